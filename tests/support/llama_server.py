"""llama.cpp's server with a small model, which answers all three formats.

`python -m tests.support.llama_server FILE TOKENS` prints its address, and ends with its standard input. TOKENS is the
size of its context.
"""

import sys


def main() -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.n_ctx = int(sys.argv[2])
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1  # more wait for each other on a busy machine
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
