"""Recordings beside what the core does: options, children, forks, how a process ends, snapshots."""
