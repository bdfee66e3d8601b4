"""Astraea: learned congestion control, from simulation to deployment."""

from astraea._native import __version__

__all__ = ["__version__"]
