# Steps of scripts/setup; sourced, never run. Each does nothing when there is nothing to do.
# shellcheck shell=bash

say() { printf 'setup: %s\n' "$*" >&2; }

# Ends with status 3, "the machine is not ready", as nicbench itself does.
fail() {
    printf 'setup: %s\n  next: %s\n' "$1" "$2" >&2
    exit 3
}

# Runs a step that waits for the network and the disk while the compiler has the processors; `started` is its process.
# It ends with the set-up, however that ends.
beside() {
    "$@" &
    started=$!
    besides="${besides:-} $started"
    # shellcheck disable=SC2154
    trap 'kill $besides 2>/dev/null || true' EXIT
}

# --- Rust -----------------------------------------------------------------------------------------------------------

find_cargo() {
    local cargo_bin="${CARGO_HOME:-$HOME/.cargo}/bin" needed found
    if ! command -v cargo >/dev/null && [ -x "$cargo_bin/cargo" ]; then
        PATH="$cargo_bin:$PATH"
    fi
    needed=$(sed -n 's/^rust-version *= *"\(.*\)".*/\1/p' engine/Cargo.toml)
    command -v cargo >/dev/null ||
        fail "cargo is not installed" "install Rust $needed or newer with rustup, see https://rustup.rs (Debian 12's own is too old)"
    found=$(cargo --version | cut -d ' ' -f 2)
    [ "$(printf '%s\n' "$needed" "$found" | sort -V | head -n 1)" = "$needed" ] ||
        fail "cargo $found is too old, the engine needs Rust $needed" "rustup update stable"
}

# The XDP programs of DUTs and labs, from NAME.bpf.c in the package to NAME.bpf.o beside the engine's binaries. They call
# the kernel by its stable interface alone, and BPF has one little-endian form: an object serves every kernel and CPU.
build_programs() {
    local source object folder=${1:-engine/target/release}
    local flags=(-O2 -g -Wall -Werror -target bpf -fdebug-compilation-dir=.)
    # asm/types.h stands in the multiarch folder, which clang does not search for this target.
    for source in /usr/include/*-linux-gnu*; do flags+=(-idirafter "$source"); done
    for source in src/nicbench/testbed/*/*.bpf.c; do
        object=$folder/$(basename "$source" .c).o
        [ "$object" -nt "$source" ] && continue
        clang "${flags[@]}" -c "$source" -o "$object.new" >&2 && mv "$object.new" "$object" ||
            fail "$source does not compile" "apt-get install clang libbpf-dev linux-libc-dev"
    done
}

build_engine() {
    [ -x engine/target/release/nicbench-packets ] || say "building the engine, which takes a minute or two the first time"
    (cd engine && cargo build --release --locked --quiet 2>&1) >&2 ||
        fail "the engine does not build" "read the compiler's message above; a missing library is named by pkg-config"
    build_static nicbench-monitor nicbench-frames nicbench-agent nicbench-connections
    build_programs
}

# These go to other hosts, so that they are linked statically. Naming the target keeps these flags from what runs while
# building; one call links several at once.
build_static() {
    local target
    target=$(cd engine && rustc -vV | sed -n 's/^host: //p')
    (
        cd engine
        export RUSTFLAGS="-C target-feature=+crt-static"
        cargo build --release --locked --quiet --target "$target" "${@/#/--package=}" 2>&1
    ) >&2 || fail "$* do not build" "read the compiler's message above; they need libc.a of the package libc6-dev"
    install -m 755 "${@/#/engine/target/$target/release/}" engine/target/release/
}

# --- Debian packages ------------------------------------------------------------------------------------------------

# Names in packages.debian of the given kinds.
packages_of() {
    local kind
    for kind in $1; do
        sed -n "s/^\([a-z0-9][a-z0-9+.-]*\) *# *$kind:.*/\1/p" packages.debian
    done
}

# Of the names on stdin, those that are not installed.
missing_packages() {
    local wanted installed
    wanted=$(cat)
    # shellcheck disable=SC2086
    installed=$(dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null |
        sed -n 's/ installed$//p' || true)
    printf '%s\n' "$wanted" | grep -vxF -e "${installed:-none}" || true
}

# Runs a command that installs packages; services that come with them (sshd, databases) are not started meanwhile.
without_services() {
    local policy=${NICBENCH_SERVICE_POLICY:-/usr/sbin/policy-rc.d} status=0
    if [ -e "$policy" ] || ! printf '#!/bin/sh\nexit 101\n' 2>/dev/null >"$policy"; then
        "$@"
        return
    fi
    chmod 755 "$policy"
    "$@" || status=$?
    rm -f "$policy"
    return "$status"
}

install_packages() {
    [ "${NICBENCH_SKIP_PACKAGES:-}" = 1 ] && return
    local wanted missing command log
    wanted=$(packages_of "$1")
    find_python >/dev/null || wanted="$wanted
python3
python3-venv"
    [ -n "$wanted" ] || return 0
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        fail "this is not Debian, so its packages cannot be installed for you" \
            "install what corresponds to: $(echo $wanted), then call again with NICBENCH_SKIP_PACKAGES=1"
    fi
    missing=$(printf '%s\n' "$wanted" | missing_packages | tr '\n' ' ' | sed 's/ *$//')
    [ -z "$missing" ] && return
    command="apt-get install --no-install-recommends --yes $missing"
    [ "$(id -u)" = 0 ] || fail "Debian packages are missing, and installing them needs root" "sudo $command"
    say "installing these Debian packages, which takes a minute or two: $missing"
    log=$(mktemp)
    export DEBIAN_FRONTEND=noninteractive
    apt-get update --quiet >"$log" 2>&1 || say "the lists of packages could not be renewed; trying those that are here"
    # shellcheck disable=SC2086
    without_services apt-get install --quiet --no-install-recommends --yes $missing >>"$log" 2>&1 || {
        tail -n 15 "$log" >&2
        fail "installing the Debian packages failed, all of its output is in $log" "$command"
    }
    rm -f "$log"
}

# --- The lab in a virtual machine -----------------------------------------------------------------------------------

# A machine that has no way to get it can do all the rest. Takes the process of scripts/fetch-vm, or nothing.
end_fetching() {
    [ -z "$1" ] || wait "$1" ||
        say "without it no lab in a virtual machine works here, and the tests marked \`vm\` are left out"
}

# --- Python ---------------------------------------------------------------------------------------------------------

# The first Python that is new enough and can make environments (Debian packs `venv` apart).
find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.11 python3.12 python3.13 python3.14 /usr/bin/python3; do
        if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

# Whether file $1 holds the text $2.
stamped() { [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }

# Takes the lock files: the first is the environment's, further ones are added to it.
make_environment() {
    local python lock project more
    # A changed lock or place makes the whole environment stale, a changed pyproject.toml the package's own entry.
    lock=$( (pwd && cat requirements.lock) | sha256sum)
    project=$(sha256sum <pyproject.toml)
    if ! stamped .venv/lock-stamp "$lock" || ! .venv/bin/python -c '' 2>/dev/null; then
        python=$(find_python) || fail "no Python 3.11 or newer with venv was found" "apt-get install python3 python3-venv"
        say "making the Python environment .venv from requirements.lock ($("$python" --version))"
        [ ! -L .venv ] || rm .venv # it leads to the environment of another clone, which is not cleared
        "$python" -m venv --clear .venv
        install_with_pip --require-hashes --requirement requirements.lock
        printf '%s\n' "$lock" >.venv/lock-stamp
    fi
    for more in ${1#* }; do
        [ "$more" != requirements.lock ] || continue
        lock=$(sha256sum <"$more")
        stamped ".venv/$more-stamp" "$lock" && continue
        install_with_pip --require-hashes --requirement "$more"
        printf '%s\n' "$lock" >".venv/$more-stamp"
    done
    if ! stamped .venv/project-stamp "$project"; then
        install_with_pip --no-deps --no-build-isolation --editable .
        printf '%s\n' "$project" >.venv/project-stamp
    fi
}

install_with_pip() {
    .venv/bin/pip install --quiet --disable-pip-version-check "$@" >&2 ||
        fail "the Python environment could not be made" "look at pip's message above; the network or a proxy is a common cause"
}
