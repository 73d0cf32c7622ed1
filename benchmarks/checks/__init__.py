"""Sweeps that look for what goes wrong once in many times, one file each."""
