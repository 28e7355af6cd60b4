"""The painter, a program that the server starts as a process of its own: it imports the standard library and itself alone.

prompt -> negation.py (what it refuses) -> scene.py (what it means, and what is told of it)
       -> paint.py (places.py, figures.py: the shapes of things.py) -> canvas.py (pixels) -> PNG
"""
