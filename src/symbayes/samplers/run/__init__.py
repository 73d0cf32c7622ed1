"""Running chains side by side: clock, scheduler, threads, processes, clusters."""
