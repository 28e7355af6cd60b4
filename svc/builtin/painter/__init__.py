"""The painter, a program in a separate process. It imports only the standard library and itself.

prompt -> scene.py (refused words; the meaning of the others by the tables *.txt, and its description)
       -> paint.py (figures.py with the shapes of things.txt) -> canvas.py (pixels) -> PNG
"""
