"""The painter, a program that the server starts as a process of its own: it imports the standard library and itself alone.

prompt -> scene.py (what it means) -> paint.py (places.py, figures.py: the shapes of things.py) -> canvas.py (pixels) -> PNG
"""
