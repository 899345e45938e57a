"""Recordings outside the core: options, children, forks, ends of processes, snapshots."""
