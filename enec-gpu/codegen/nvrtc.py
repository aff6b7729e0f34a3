"""Compiles CUDA C++ to PTX with NVRTC: no device, no toolkit, no host compiler.

    nvrtc.py LIBRARY SOURCE OUTPUT OPTION...

Headers are found with `--include-path=FOLDER`, as by any compiler.
"""

import ctypes
import pathlib
import sys


def main() -> None:
    library, source, output, *options = sys.argv[1:]
    nvrtc = ctypes.CDLL(library)

    def call(function: str, *arguments: object) -> int:
        return getattr(nvrtc, function)(*arguments)

    program = ctypes.c_void_p()
    text = pathlib.Path(source).read_bytes()
    if call("nvrtcCreateProgram", ctypes.byref(program), text, pathlib.Path(source).name.encode(), 0, None, None):
        sys.exit(f"{source}: nvrtcCreateProgram failed")
    array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    failed = call("nvrtcCompileProgram", program, len(options), array)
    log = read(call, program, "ProgramLog").decode()
    if log.strip():
        print(log.strip(), file=sys.stderr)
    # Warnings are errors here as elsewhere.
    if failed or "warning" in log:
        sys.exit(f"{source}: not compiled")
    pathlib.Path(output).write_bytes(read(call, program, "PTX"))


def read(call, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    if call(f"nvrtcGet{what}Size", program, ctypes.byref(size)):
        sys.exit(f"nvrtcGet{what}Size failed")
    buffer = ctypes.create_string_buffer(size.value)
    if call(f"nvrtcGet{what}", program, buffer):
        sys.exit(f"nvrtcGet{what} failed")
    # Without the zero at its end.
    return buffer.raw[:-1]


main()
