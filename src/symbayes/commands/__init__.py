"""The commands of the command line: how their words are read, and what each of them does."""
