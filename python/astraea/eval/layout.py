"""What a run leaves behind: the names of its files, and the version of what is in results.json."""

from __future__ import annotations

SCHEMA = 1
"""Version of the layout of results.json; keys may be added without another one."""

RESULTS = "results.json"
SERIES_FILE, LINKS_FILE, COMPLETIONS_FILE = "series.parquet", "links.parquet", "completions.parquet"
PAGE = "report.html"
FILES = (RESULTS, SERIES_FILE, LINKS_FILE, COMPLETIONS_FILE, PAGE)
