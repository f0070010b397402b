"""Toolgate between a real client and real servers; see `run.py`."""
