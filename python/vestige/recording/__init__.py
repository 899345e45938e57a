"""What a recording needs beside the core: options, children, forks, how a process ends, snapshots."""
