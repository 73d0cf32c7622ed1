"""The search before the sampling: ways of finding good states, none of which has to be exact."""
