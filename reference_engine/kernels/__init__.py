"""What a step spends its time in, each part twice: plain torch here, Triton in `gpu`.

The torch twin defines the result and serves CPUs; `dispatch` picks. See docs/gpu.md.
"""
