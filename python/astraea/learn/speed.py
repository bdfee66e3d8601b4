"""How PyTorch computes on this machine."""

from __future__ import annotations

import torch

PRECISION = 1e-5
"""Largest relative error that single precision may show in the product below; half precision shows 1e-3."""


def choose(threads: int, device: torch.device) -> bool:
    """Set the number of threads, and let oneDNN multiply matrices if it is as exact as the default: whether it was.

    PyTorch offers oneDNN's products, up to twice as fast on AMD's processors, only along with leave to round to half
    precision. Processors with matrix units make use of that, and then the estimates of the critics lose more than they
    can spare; the others do not. So the answer is tried out.
    """
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision("highest")
    if device.type != "cpu":
        return False
    torch.set_float32_matmul_precision("medium")
    if product_error() <= PRECISION:
        return True
    torch.set_float32_matmul_precision("highest")
    return False


def product_error() -> float:
    """Largest error of a product of matrices as large as the networks', in units of the largest entry."""
    generator = torch.Generator().manual_seed(1)
    left, right = (torch.randn(256, 256, generator=generator) for _ in range(2))
    exact = left.double() @ right.double()
    found = [left @ right, torch.bmm(left[None], right[None])[0]]
    return max(float((product.double() - exact).abs().max() / exact.abs().max()) for product in found)
