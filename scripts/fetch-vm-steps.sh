# Steps of scripts/fetch-vm; sourced, never run. Packages come by apt, which verifies Debian's signatures, from lists of their own:
# neither the machine's sources nor its lists nor its packages change. What is complete has its name; all else is in a hidden folder.
# shellcheck shell=bash

PATH="$PATH:/usr/sbin:/sbin" # depmod, for users

say() { printf 'fetch-vm: %s\n' "$*" >&2; }

# Ends with status 3, "the machine is not ready", as nicbench itself does.
fail() {
    printf 'fetch-vm: %s\n  next: %s\n' "$1" "$2" >&2
    exit 3
}

# --- What is there --------------------------------------------------------------------------------------------------

# The words of what has to be fetched into folder $1: `kernel`, `qemu`. With $2 = yes, whatever may have become newer.
what_is_needed() {
    local vm=$1 again=$2
    if [ "$again" = yes ] || [ -z "$(complete_kernels "$vm")" ]; then echo kernel; fi
    if has_igb qemu-system-x86_64; then return; fi
    if [ "$again" = yes ] || [ -z "$(complete_qemus "$vm")" ]; then echo qemu; fi
}

# Folders of kernels that can be booted, the oldest first.
complete_kernels() {
    local each
    for each in "$1"/kernel-*; do
        if compgen -G "$each/boot/vmlinuz-*" >/dev/null && compgen -G "$each/lib/modules/*/modules.dep" >/dev/null; then
            printf '%s\n' "$each"
        fi
    done | sort -V
}

# Folders of QEMUs, the oldest first.
complete_qemus() {
    local each
    for each in "$1"/qemu-*; do
        if [ -x "$each/usr/bin/qemu-system-x86_64" ]; then printf '%s\n' "$each"; fi
    done | sort -V
}

# Whether this QEMU starts and emulates Intel's 82576.
has_igb() { "$1" -device igb,help 2>/dev/null </dev/null | grep -q '^igb options'; }

name_older() {
    local old
    for old in $(complete_kernels "$1" | sed '$d') $(complete_qemus "$1" | sed '$d'); do
        say "$old is older and no longer used; to remove it: rm -r $old"
    done
}

# --- Before ---------------------------------------------------------------------------------------------------------

can_fetch() {
    local vm=$1 program free_mib needed_mib=700
    [ "$(uname -m)" = x86_64 ] || fail "labs in a virtual machine need an x86-64 machine, this is $(uname -m)" "use the labs veth and memif"
    for program in apt-get dpkg-deb; do
        command -v "$program" >/dev/null ||
            fail "this is not Debian ($program is not there)" "unpack a kernel package of Debian into $vm/kernel-VERSION, call depmod, and install QEMU 8.0 or newer; docs/vm.md has the layout"
    done
    command -v depmod >/dev/null || fail "depmod is not installed" "apt-get install --no-install-recommends kmod"
    mkdir -p "$vm" || fail "$vm cannot be made" "set XDG_CACHE_HOME to a folder that you may write to"
    free_mib=$(($(df --output=avail -k "$vm" | tail -n 1) / 1024))
    [ "$free_mib" -ge "$needed_mib" ] ||
        fail "$vm has $free_mib MiB free, and $needed_mib are needed" "make room there, or set XDG_CACHE_HOME to a folder on another disk"
}

take_turn() {
    exec {turn}>"$1/.lock"
    flock --nonblock "$turn" && return
    say "another set-up is fetching; waiting for it"
    flock "$turn"
}

make_work_folders() {
    rm -rf "$1"/.fetching.* # of one that was killed
    unpacking=$(mktemp -d "$1/.fetching.XXXXXX")
    # Not in the user's home: there apt could not give up root for its downloads.
    downloads=$(mktemp -d "${TMPDIR:-/tmp}/nicbench-fetch.XXXXXX")
    trap 'rm -rf "$unpacking" "$downloads"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    chmod 755 "$downloads"
    mkdir -p "$downloads"/lists/partial "$downloads"/cache/archives/partial "$downloads"/packages "$downloads"/none
    if [ "$(id -u)" = 0 ] && id _apt >/dev/null 2>&1; then chown _apt "$downloads/packages"; fi
}

# --- apt ------------------------------------------------------------------------------------------------------------

# Any program of apt, with sources, lists and preferences of its own.
with_lists() {
    local program=$1
    shift
    "$program" \
        -o Dir::Etc::SourceList="$downloads/sources.list" -o Dir::Etc::SourceParts=- \
        -o Dir::Etc::Preferences=- -o Dir::Etc::PreferencesParts="$downloads/none" \
        -o Dir::State::Lists="$downloads/lists" -o Dir::Cache="$downloads/cache" \
        -o Acquire::AllowInsecureRepositories=false -o APT::Get::AllowUnauthenticated=false \
        -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 \
        "$@"
}

# The release whose packages are taken: the machine's own where it is Debian.
read_release() {
    local ID='' VERSION_CODENAME=''
    if [ -r /etc/os-release ]; then . /etc/os-release; fi
    if [ "$ID" = debian ] && [ -n "$VERSION_CODENAME" ]; then echo "$VERSION_CODENAME"; else echo bookworm; fi
}

# Where the machine gets release $1 from, which may be a mirror nearby; otherwise $2.
mirror_of() {
    local found
    # shellcheck disable=SC2016
    found=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 'Component: main' 2>/dev/null |
        sed -n "s/^$1 //p" | head -n 1)
    echo "${found:-$2}"
}

read_lists() {
    local mirror security keyring signed=''
    release=$(read_release)
    mirror=$(mirror_of "$release" http://deb.debian.org/debian)
    security=$(mirror_of "$release-security" http://deb.debian.org/debian-security)
    for keyring in /usr/share/keyrings/debian-archive-keyring.gpg /usr/share/keyrings/debian-archive-keyring.pgp; do
        if [ -r "$keyring" ]; then signed="[signed-by=$keyring] " && break; fi
    done
    printf 'deb %s%s main\n' "$signed" "$mirror $release" "$signed" "$mirror $release-backports" \
        "$signed" "$security $release-security" >"$downloads/sources.list"
    say "reading the lists of $release's packages from $mirror (14 MB, kept apart from the machine's)"
    with_lists apt-get update --quiet >"$downloads/log" 2>&1 || true # what is missing then is said by its name
}

# The last words of apt, and what to do.
apt_failed() {
    grep -E '^(E|W|Err)' "$downloads/log" | tail -n 6 | sed 's/^/  /' >&2 || true
    fail "$1" "look at apt's words above (no network, a proxy that apt does not know, or a full disk), then call scripts/fetch-vm again"
}

# A field of a package's record: package, field.
field_of() {
    with_lists apt-cache show --no-all-versions "$1" 2>>"$downloads/log" | sed -n "s/^$2: //p" | head -n 1
}

# Downloads package=version ..., verified, and unpacks all of them into folder $1.
unpack() {
    local target=$1 each
    shift
    rm -rf "$downloads"/packages/*
    (cd "$downloads/packages" && with_lists apt-get download --quiet "$@") >"$downloads/log" 2>&1 ||
        apt_failed "$* cannot be downloaded"
    mkdir "$target"
    for each in "$downloads"/packages/*.deb; do
        dpkg-deb --extract "$each" "$target" 2>"$downloads/log" ||
            fail "$(basename "$each") cannot be unpacked: $(head -n 1 "$downloads/log")" "make room in $folder if it is full, then call scripts/fetch-vm again"
    done
}

# Gives what was unpacked and tried its name: from here on it is complete. What bore that name before was not.
complete() {
    rm -rf "$2"
    mv -T "$1" "$2"
}

# --- The kernel -----------------------------------------------------------------------------------------------------

fetch_kernel() {
    local package version name target fresh=$unpacking/kernel
    # "linux-image-6.1.0-56-amd64 (= 6.1.192-2)"
    read -r package version < <(field_of linux-image-amd64 Depends | sed -n 's/^\(linux-image-[^ ]*\) (= \([^)]*\)).*/\1 \2/p') || true
    [ -n "${version:-}" ] || apt_failed "the package linux-image-amd64 is not in the lists of $release"
    target=$1/kernel-${version#*:}
    if complete_kernels "$1" | grep -qxF "$target"; then
        say "the newest kernel is there: $target"
        return
    fi
    say "downloading $package $version ($(($(field_of "$package" Size) / 1000000)) MB), to unpack it into $target ($(($(field_of "$package" Installed-Size) / 1000)) MB)"
    unpack "$fresh" "$package=$version"
    if [ -d "$fresh/usr/lib/modules" ]; then # Debian 13 and newer
        mkdir -p "$fresh/lib" && mv "$fresh/usr/lib/modules" "$fresh/lib/"
    fi
    name=$(basename "$fresh"/lib/modules/*)
    [ -e "$fresh/boot/vmlinuz-$name" ] || fail "$package $version holds no kernel that could be booted" "report this, with the package's name"
    depmod --basedir "$fresh" "$name" 2>"$downloads/log" ||
        fail "the index of the kernel's modules cannot be made: $(tail -n 1 "$downloads/log")" "make room in $1 if it is full, then call scripts/fetch-vm again"
    complete "$fresh" "$target"
    say "kernel $name is in $target"
}

# --- QEMU -----------------------------------------------------------------------------------------------------------

fetch_qemu() {
    local packages version target fresh=$unpacking/qemu
    # What the machine lacks or has too old of it and of all that it depends on; nothing is installed by a simulation.
    packages=$(with_lists apt-get install --simulate --no-install-recommends --target-release "$release-backports" qemu-system-x86 2>"$downloads/log" |
        sed -n 's/^Inst \([^ ]*\) .*(\([^ ]*\) .*/\1=\2/p')
    version=$(printf '%s\n' "$packages" | sed -n 's/^qemu-system-x86=//p')
    [ -n "$version" ] || apt_failed "$release-backports offers no newer qemu-system-x86 for this machine"
    target=$1/qemu-${version#*:}
    if complete_qemus "$1" | grep -qxF "$target"; then
        say "the newest QEMU is there: $target"
        return
    fi
    say "this machine's QEMU has no card igb, or there is none: downloading $(echo $packages) (13 MB or more), to unpack them into $target (90 MB)"
    # shellcheck disable=SC2086
    unpack "$fresh" $packages
    LD_LIBRARY_PATH="$fresh/usr/lib/x86_64-linux-gnu" has_igb "$fresh/usr/bin/qemu-system-x86_64" ||
        fail "the QEMU $version that was fetched does not start" "install QEMU 8.0 or newer by hand; labs in a virtual machine work without it, but for the card igb"
    complete "$fresh" "$target"
    say "QEMU ${version#*:} is in $target"
}
