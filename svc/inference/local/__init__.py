"""Chat models of GGUF files on this machine: the files, a helper process for each loaded one, and its calls.

The helper process is llama.cpp's own server, of the optional package xllamacpp. It is asked as any model server is.
"""
