"""The painter, a program in a separate process. It imports only the standard library and itself.

prompt -> negation.py (refused words) -> scene.py (the meaning of the others, and its description)
       -> paint.py (places.py, figures.py with the shapes of things.py) -> canvas.py (pixels) -> PNG
"""
