"""One exception for each status of the library, each also of the built-in kind that a caller would expect."""


class Error(Exception):
    """Carries the library's message; `status` is the name of its status, e.g. "over_limit"."""
    status = "internal"


class OptionError(Error, ValueError):
    """A setting that cannot be right."""
    status = "bad_option"


class InputError(Error, ValueError):
    """A file that is damaged, missing or of the wrong kind."""
    status = "bad_input"


class IOFailed(Error, OSError):
    """The system refused to read or write."""
    status = "io_failed"


class OutOfMemory(Error, MemoryError):
    """The system has no memory left."""
    status = "no_memory"


class OverLimit(Error, MemoryError):
    """The work cannot be done within the memory limit."""
    status = "over_limit"


class Unsupported(Error, RuntimeError):
    """A right request that this build or device cannot serve."""
    status = "unsupported"


class Interrupted(Error):
    """The caller asked to stop."""
    status = "interrupted"


class DeviceLost(Error, RuntimeError):
    """The device failed."""
    status = "device_lost"


class InternalError(Error, RuntimeError):
    """A mistake of the library."""
    status = "internal"


# In the order of tess_status, from 1 on.
BY_STATUS = (OptionError, InputError, IOFailed, OutOfMemory, OverLimit, Unsupported, Interrupted, DeviceLost, InternalError)


def of_status(status, message):
    kind = BY_STATUS[status - 1] if 0 < status <= len(BY_STATUS) else InternalError
    return kind(message)
