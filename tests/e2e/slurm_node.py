"""slurm_node.py: a Slurm of one node on this machine, with a configuration, keys and ports of its own, for the tests of Slurm."""
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import time

CONF = """\
ClusterName=tessera
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=pmix
ReturnToService=2
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} Gres=gpu:{gpus} State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=60 State=UP OverSubscribe=FORCE:8
"""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")


def missing():
    """Why Slurm cannot run here; None if it may."""
    if os.getuid() != 0:
        return "slurmd must be started by root"
    for program, package in (("munged", "munge"), ("slurmctld", "slurm-wlm"), ("slurmd", "slurm-wlm"), ("srun", "slurm-wlm"), ("sbatch", "slurm-wlm")):
        if not shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            return f"there is no {program} (Debian: {package})"
    return None


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Node:
    """munged, slurmctld and slurmd as children of this process. Slurm takes some other devices for `gpus` cards."""

    def __init__(self, folder, cpus=4, gpus=4, env=None):
        self.folder, self.children = pathlib.Path(folder), []
        self.folder.mkdir()
        self.folder.chmod(0o755)
        (self.folder / "state").mkdir()
        (self.folder / "spool").mkdir()
        host, (controller, daemon) = socket.gethostname().split(".")[0], free_ports(2)
        # The node has more cores than this machine may have: nothing here is bound to one.
        (self.folder / "slurm.conf").write_text(CONF.format(folder=self.folder, host=host, controller=controller, daemon=daemon, cpus=cpus, gpus=gpus) +
                                                "SlurmdParameters=config_overrides\n")
        (self.folder / "gres.conf").write_text("".join(f"NodeName={host} Name=gpu File={device}\n" for device in DEVICES[:gpus]))
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        self.env = {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin", **(env or {})}

    def spawn(self, name, *command):
        with open(self.folder / f"{name}.out", "w") as out:
            self.children.append((name, subprocess.Popen(command, env={**os.environ, **self.env}, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.folder)))

    def start(self, seconds=30):
        """True when the node takes jobs."""
        f = self.folder
        self.spawn("munged", "munged", "--foreground", "--force", f"--socket={f}/munge.socket", f"--key-file={f}/munge.key", f"--pid-file={f}/munge.pid",
                   f"--log-file={f}/munge.log", f"--seed-file={f}/munge.seed", "--num-threads=1")
        deadline = time.monotonic() + seconds
        while not (f / "munge.socket").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.spawn("slurmctld", "slurmctld", "-D", "-c")
        self.spawn("slurmd", "slurmd", "-D", "-c")
        while time.monotonic() < deadline:
            if self.run("sinfo", "-h", "-o", "%t").stdout.strip() in ("idle", "mix", "alloc"):
                return True
            if any(child.poll() is not None for _, child in self.children):
                break
            time.sleep(0.2)
        return False

    def run(self, *command, env=None, seconds=120, cwd=None):
        command = list(map(str, command))
        try:
            return subprocess.run(command, env={**os.environ, **self.env, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, cwd=cwd or self.folder)
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(command, None, str(late.stdout), str(late.stderr))

    def logs(self):
        found = []
        for path in (*sorted(self.folder.glob("*.out")), *sorted(self.folder.glob("*.log"))):
            found += [f"{path.name}: {line}" for line in path.read_text(errors="replace").splitlines()[-8:]]
        return "\n".join(found)

    def stop(self):
        self.run("scancel", "--user=root", seconds=10)
        for _, child in reversed(self.children):
            if child.poll() is None:
                child.terminate()
        for _, child in reversed(self.children):
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
