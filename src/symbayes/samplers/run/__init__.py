"""Running chains side by side: clocks, threads, processes, clusters."""
