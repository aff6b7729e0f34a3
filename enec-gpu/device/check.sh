#!/usr/bin/env bash
# Checks and measures the CUDA backend on this machine, with the programs beside this script: `cargo xtask cuda-bundle` puts them there.
# Needs a driver and a device; compute-sanitizer is used where there is one. Ends with a summary; exits with 1 if anything failed.
#
#   ./check.sh [--require] [--results FOLDER]      --require: a missing compute-sanitizer is a failure too
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

require=
results=results
while [ $# -gt 0 ]; do
    case $1 in
        --require) require=1 ;;
        --results) results=${2:?--results needs a folder}; shift ;;
        *) echo "error: \`$1\`: expected \`--require\` or \`--results FOLDER\`" >&2; exit 2 ;;
    esac
    shift
done
mkdir -p "$results" || exit 1
results=$(cd "$results" && pwd)

export ENEC_CHECKOUT=$PWD ENEC_REQUIRE=cuda
# Where drivers lie that the loader's cache does not know.
for folder in /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/local/nvidia/lib64 /usr/lib/wsl/lib; do
    if [ -e "$folder/libcuda.so.1" ]; then
        export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    fi
done

failed=0
summary=()

# step NAME SECONDS COMMAND...: output goes to the screen and to NAME.txt.
step() {
    local name=$1 seconds=$2 start=$SECONDS status
    shift 2
    printf '\n=== %s: %s\n' "$name" "$*"
    timeout "$seconds" "$@" 2>&1 | tee "$results/$name.txt"
    status=${PIPESTATUS[0]}
    if [ "$status" -eq 0 ]; then
        summary+=("passed   $name, $((SECONDS - start)) s")
    else
        [ "$status" -eq 124 ] && status="over $seconds s"
        summary+=("FAILED   $name ($status)")
        failed=1
    fi
    return "$failed"
}

finish() {
    printf '\n=== summary (texts in %s)\n' "$results"
    printf '%s\n' "${summary[@]}"
    exit "$failed"
}

if command -v nvidia-smi > /dev/null; then
    step machine 30 nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.memory --format=csv
fi
step devices 60 ./enec devices
# Without a device nothing below means anything.
if ! ./enec devices --json | grep -q '"backend": *"cuda:0"'; then
    echo "error: no device for the CUDA backend; \`enec devices\` says why" >&2
    summary+=("FAILED   device: none")
    failed=1
    finish
fi

step conformance 300 ./conformance

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2> /dev/null | head -n 1)
if [ -n "$sanitizer" ]; then
    # Small tensors of every type, in every pair of places: the tools slow kernels down a hundredfold.
    for tool in memcheck racecheck; do
        for cases in placement/aligned placement/odd ranges batch/mixed; do
            step "$tool-${cases//\//-}" 180 "$sanitizer" --tool "$tool" --error-exitcode 9 ./conformance --test-threads 1 "$cases"
        done
    done
else
    summary+=("skipped  compute-sanitizer: not found on PATH and in /usr/local/cuda*/bin")
    [ -n "$require" ] && failed=1
fi

# One thread of the host is enough to ask the device; all of them make the copies between host and device.
for dtype in BF16 F16 F32; do
    step "bench-$dtype" 300 ./enec-bench --backend cuda --data synthetic:1G --dtype "$dtype" --threads 4 --repetitions 5 \
        --out "$results/bench-$dtype.json"
done
printf '\n=== figures, GB/s of uncompressed bytes\n'
grep -h -E 'on the device, by its clock|over the same link' "$results"/bench-*.txt
finish
