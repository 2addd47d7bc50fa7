"""Phase 2 of torch_stats.py: epochs of the autoencoder of `tessera bench stats --phase 2` in PyTorch.

The formulas are those of check_pipelines.py, where losses are compared step by step. Variants: fp32, on a card TF32, and bf16 (autocast),
each eager, compiled, and on a card compiled with CUDA graphs. AdamW is fused where it can be; nothing waits for the device inside an epoch.
"""
import torch
import torch.nn.functional as F

WIDTHS = (20, 10, 20)


class Autoencoder(torch.nn.Module):
    def __init__(self, channels, device):
        super().__init__()
        torch.manual_seed(0)
        before, self.layers = channels, torch.nn.ParameterList()
        self.fixed = []
        for width in (*WIDTHS, channels):
            q = torch.linalg.qr(torch.randn(max(before, width), max(before, width)))[0][:width, :before].contiguous().to(device)
            self.fixed.append((torch.zeros(before, device=device), torch.full((before,), 0.3, device=device), q))
            self.layers.append(torch.nn.Parameter((0.01 * torch.randn(width, width)).to(device)))
            self.layers.append(torch.nn.Parameter(torch.zeros(width, device=device)))
            before = width

    def forward(self, x):
        x = y = (x - 0.0) / 400.0
        for i, (mean, deviation, turn) in enumerate(self.fixed):
            y = ((y - mean) / (deviation + 1e-6)) @ turn.T @ self.layers[2 * i].T + self.layers[2 * i + 1]
        return F.mse_loss(y.float(), x)


def variants(device):
    kinds = [("fp32", False, False), ("bf16", False, True)] + ([("tf32", True, False)] if device == "cuda" else [])
    modes = [("", None), ("+compile", {}), *([("+graphs", {"mode": "reduce-overhead"})] if device == "cuda" else [])]
    return [(name + text, tf32, half, options) for name, tf32, half in kinds for text, options in modes]


def epochs(device, batches, half, options):
    """A function that trains one epoch and waits for it; batches() gives tensors on the device."""
    channels = next(iter(batches())).shape[-1]
    model = Autoencoder(channels, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), weight_decay=0.01, fused=device == "cuda")

    def loss_of(x):
        with torch.autocast(device, torch.bfloat16, enabled=half):
            return model(x)

    call = loss_of if options is None else torch.compile(loss_of, **options)

    def run():
        loss = None
        for x in batches():
            if options:
                torch.compiler.cudagraph_mark_step_begin()
            loss = call(x)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            loss = loss.detach()
        return float(loss)
    return run


def peers(device, record, timed, streamed, seconds):
    """(seconds of an epoch, processor seconds, name, relative difference of the first epoch's loss from fp32's) of all variants."""
    load = record["input"]
    side, channels, batch, samples = load["height"], load["channels"], load["batch"], load["samples"]
    steps = -(-samples // batch)  # the last batch of an epoch is a whole one, as tessera's
    distinct = max(1, min(steps, load["distinct"] // batch))
    host = [torch.empty(batch, side, side, channels, pin_memory=device == "cuda").normal_(100, 10) for _ in range(distinct)]
    from_device = record["source"] == "device" or device == "cpu"
    stored = [x.cuda() for x in host] if device == "cuda" and from_device else host
    order = [stored[i % distinct] for i in range(steps)]
    results, exact = [], None
    for name, tf32, half, options in variants(device):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        try:
            run = epochs(device, (lambda: iter(order)) if from_device else (lambda: streamed(order)), half, options)
            loss = run()
            exact = loss if exact is None else exact
            results.append((*timed(run, seconds), name, abs(loss - exact) / abs(exact)))
        except Exception as problem:  # a machine without a compiler, or a card without memory for it
            print(f"  {name}: {(str(problem).splitlines() or ['?'])[0][:100]}")
        torch.compiler.reset()
        if device == "cuda":
            torch.cuda.empty_cache()
    torch.backends.cuda.matmul.allow_tf32 = False
    return results
