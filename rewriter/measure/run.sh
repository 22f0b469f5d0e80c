#!/usr/bin/env bash
# Measures the rewriter on this machine's NVIDIA GPU: parity with PyTorch's numbers, then decoding and
# LoRA training beside PyTorch, if python3 has torch and transformers. Needs the driver and CUDA's NVRTC
# with its headers, from the toolkit or from the Python packages that torch brings. Arguments are handed
# on; `--shapes shapes/qwen3-0.6b` or `--decode 1` makes it shorter. Writes results.jsonl and table.md
# into the folder named by OUT, else into a new one beside this script.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
out="${OUT:-$here/results-$(date -u +%Y%m%dT%H%M%SZ)}"

# The Python packages keep each library in a folder of its own, headers beside it.
packages() {
    python3 - "$1" <<'PYTHON' 2>/dev/null || true
import glob, os, sys, sysconfig
for base in {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]}:
    for found in sorted(glob.glob(os.path.join(base, "nvidia", "**", sys.argv[1]), recursive=True)):
        print(os.path.dirname(found))
PYTHON
}
if ! ldconfig -p | grep -q 'libnvrtc\.so' && [ ! -e "${CUDA_PATH:-/usr/local/cuda}/lib64/libnvrtc.so" ]; then
    libraries="$(packages 'libnvrtc.so*' | sort -u | paste -sd:)"
else
    libraries="${CUDA_PATH:-/usr/local/cuda}/lib64"
fi
[ -n "$libraries" ] && export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
if [ -z "${CUDA_PATH:-}" ] && [ ! -e /usr/local/cuda/include/cuda_runtime.h ]; then
    headers="$(packages cuda_runtime.h | head -n 1)"
    [ -n "$headers" ] && export CUDA_PATH="${headers%/include}"
fi

# Each measurement is a process of its own: what one has compiled and tuned, the next need not. Another
# program has other kernels. A folder that
# cannot be written to, or whose name TOML would escape, keeps none.
kept="$here/kernels-$(sha256sum "$here/capo-measure" | cut -c 1-16)"
case "$here" in
    *[\"\\]*) ;;
    *)
        printf '[compilation]\ncache = { file = "%s" }\n\n[autotune]\ncache = { file = "%s" }\n' "$kept" "$kept" \
            2>/dev/null >"$here/cubecl.toml" || echo "run.sh: kernels are not kept: $here cannot be written to" >&2
        ;;
esac

"$here/capo-measure" devices
case " $* " in
    *" --shapes "*) shapes=() ;;
    *) shapes=(--shapes "$here/shapes/qwen3-0.6b" "$here/shapes/qwen3-8b") ;;
esac
cd "$here"
exec ./capo-measure all --device cuda --dtype bf16 --reference reference --torch torch_qwen3.py \
    --out "$out" "${shapes[@]}" "$@"
