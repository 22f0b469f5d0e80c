#!/bin/sh
# Installs `capo` from a folder that `cargo xtask dist` has filled, on this machine or at an address:
#   sh install.sh FOLDER
#   curl -fsSL https://example.org/capo/install.sh | sh -s -- https://example.org/capo
# The folder may be in CAPO_BASE_URL instead. `capo` goes to CAPO_INSTALL_DIR, or ~/.local/bin.
set -eu

fail() {
    echo "capo is not installed: $*" >&2
    exit 1
}

# This machine's target, as rustc calls it.
target() {
    system=$(uname -s)
    machine=$(uname -m)
    case "$system $machine" in
    "Linux x86_64" | "Linux amd64") echo x86_64-unknown-linux-gnu ;;
    "Linux aarch64" | "Linux arm64") echo aarch64-unknown-linux-gnu ;;
    "Darwin x86_64") echo x86_64-apple-darwin ;;
    "Darwin arm64") echo aarch64-apple-darwin ;;
    *) fail "there are no archives for $system on $machine; build it from source, as README.md says" ;;
    esac
}

# Brings a file of the folder into the temporary one.
fetch() {
    case $base in
    http://* | https://*)
        if command -v curl >/dev/null; then
            curl -fsSL -o "$temporary/$1" "$base/$1"
        elif command -v wget >/dev/null; then
            wget -q -O "$temporary/$1" "$base/$1"
        else
            fail "curl or wget must be there to load from $base"
        fi
        ;;
    *) cp "$base/$1" "$temporary/$1" ;;
    esac || fail "there is no $base/$1"
}

main() {
    base=${1:-${CAPO_BASE_URL:-}}
    base=${base%/}
    into=${CAPO_INSTALL_DIR:-$HOME/.local/bin}
    into=${into%/}
    [ -n "$base" ] || fail "say where the archives are, by an argument or CAPO_BASE_URL: a folder, or its address"
    [ ! -d "$into/capo" ] || fail "$into/capo is a folder"
    target=$(target)
    if command -v sha256sum >/dev/null; then
        sha256() { sha256sum; }
    elif command -v shasum >/dev/null; then
        sha256() { shasum -a 256; }
    else
        fail "sha256sum or shasum must be there to verify the archive"
    fi

    temporary=$(mktemp -d)
    # In the folder where it stays, so that it comes there at once and whole.
    staged="$into/.capo.$$"
    trap 'rm -rf "$temporary" "$staged"' EXIT
    trap 'exit 1' HUP INT TERM

    fetch SHA256SUMS
    line=$(grep "^[0-9a-f]*  capo-[0-9A-Za-z.+-]*-$target\.tar\.gz\$" "$temporary/SHA256SUMS" | head -n 1)
    [ -n "$line" ] || fail "SHA256SUMS names no archive for $target"
    archive=${line##* }
    fetch "$archive"
    found=$(sha256 <"$temporary/$archive")
    [ "${found%% *}" = "${line%% *}" ] || fail "$archive is not the one that SHA256SUMS names: its SHA-256 is ${found%% *}"
    tar -xzf "$temporary/$archive" -C "$temporary"

    mkdir -p "$into"
    cp "$temporary/${archive%.tar.gz}/capo" "$staged"
    chmod 755 "$staged"
    version=$("$staged" --version) || fail "the one for $target does not run here; build it from source, as README.md says"
    mv -f "$staged" "$into/capo"
    echo "$version is installed as $into/capo"
    case ":$PATH:" in
    *":$into:"*) ;;
    *) echo "$into is not on the PATH. In your shell's profile: export PATH=\"$into:\$PATH\"" ;;
    esac
}

# At the end, so that half a script does nothing.
main "$@"
