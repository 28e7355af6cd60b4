"""Shapes of wire formats, and what several operations share. Other shapes are beside their handlers."""
