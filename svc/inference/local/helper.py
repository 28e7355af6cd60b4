"""llama.cpp's server for one GGUF file, in a helper process: `python -m svc.inference.local.helper`.

the settings as a JSON line on stdin -> the model is loaded -> the port as a line on stdout -> requests over HTTP
The process ends with the service: by a signal of Linux, elsewhere when stdin is closed.
"""

import ctypes
import json
import os
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1


def main() -> None:
    order = json.loads(sys.stdin.readline())
    if sys.platform == "linux":
        # Loading a model holds the interpreter's lock, so that no thread could watch stdin.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != order["parent"]:
        sys.exit("the service has ended")
    os.nice(10)  # the service goes first
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # llama.cpp writes its log to both
    server = _serve(order)
    print(server.listening_address.rpartition(":")[2], file=answers, flush=True)
    sys.stdin.read()
    os._exit(0)  # without waiting for open answers


def _serve(order: dict[str, Any]) -> Any:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = order["path"]
    parameters.api_keys = [order["key"]]
    parameters.n_parallel = order["parallel"]
    parameters.n_ctx = order["context_length"] * order["parallel"]  # llama.cpp divides it among the calls
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = order["threads"]
    if order["gpu_layers"] is not None:
        parameters.n_gpu_layers = order["gpu_layers"]
    parameters.cache_ram_mib = 0  # it would keep up to 8 GB of earlier prompts
    parameters.ui = parameters.endpoint_slots = False
    return xllamacpp.Server(parameters)


if __name__ == "__main__":
    main()
