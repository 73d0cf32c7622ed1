"""The samplers: how chains are set up, warmed up, run side by side and stopped."""
