"""Analyses that several passes share: they read programs and change nothing."""
