"""Evaluation: trials of schemes on scenarios, their metrics, and the files they are written to."""
