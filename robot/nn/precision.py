"""Which precision a device computes in by itself."""

from typing import Literal

import torch


def supported_precision(device: Literal["cpu", "auto"]) -> Literal["no", "bf16"]:
    """Return ``bf16`` where the hardware multiplies in it, else ``no`` (float32).

    Args:
        device: ``cpu``, or ``auto`` for an accelerator where there is one.
    """
    if device == "auto" and torch.cuda.is_available():
        # Emulation, which torch would offer on older ones, is slower than float32.
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "no"
    cpu = torch.cpu
    return "bf16" if cpu._is_avx512_bf16_supported() or cpu._is_amx_tile_supported() else "no"  # pyright: ignore[reportPrivateUsage]  # torch has no public question
