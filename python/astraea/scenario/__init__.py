"""Scenarios: experiments as data. Reading, checking and resolving of the TOML files."""
