# Steps of scripts/package that put the program with a Python of its own into one tree, /usr/lib/nicbench, for .deb, .rpm
# and image; sourced, never run. The Python is that of Debian 12, so that the tree needs a glibc of 2.36 or later.
# shellcheck shell=bash disable=SC2154

# Python in parts, what its modules are linked against, and bpftool, which Ubuntu has for some of its kernels only.
PYTHON=python3.11
PARTS="$PYTHON-minimal lib$PYTHON-minimal lib$PYTHON-stdlib libssl3 libffi8 zlib1g liblzma5 libbz2-1.0 libexpat1 libuuid1 libsqlite3-0 bpftool libelf1 libcap2"
# Modules of Python whose libraries are left out: terminals, dbm, network information service, Python's own tests.
UNUSED_MODULES="_curses* _dbm* nis* ossaudiodev* readline* _crypt.* _test* _xxtest* xxlimited* _ctypes_test*"
# Parts of packages that nothing here calls: Arrow's network services and stores, headers, tests of packages.
UNUSED_PARTS="pyarrow/include pyarrow/includes pyarrow/src pyarrow/tests pyarrow/*.pxi pyarrow/*.pyx pyarrow/*.pxd
    pyarrow/libarrow_flight* pyarrow/libarrow_python_flight* pyarrow/_flight* pyarrow/_pyarrow_cpp_tests*
    pyarrow/libarrow_s3* pyarrow/_s3fs* pyarrow/_gcsfs* pyarrow/_azurefs* pyarrow/_hdfs*
    pyarrow/lib*.so.*.*.* numpy/f2py/tests numpy/_core/include numpy/_core/lib numpy/random/lib bin"

# The tree of architecture $1 in build/package/tree-$1, from the wheel $2.
build_tree() {
    local architecture=$1 wheel=$2 triplet parts tree home packages name file
    triplet=$(triplet_of "$architecture")
    parts=build/package/parts-$architecture tree=build/package/tree-$architecture
    home=$tree/usr/lib/nicbench
    if [ ! -e "$parts/complete" ]; then
        rm -rf "$parts"
        unpack_packages "$parts" $(for name in $PARTS; do echo "$name:$architecture/$RELEASE"; done)
        touch "$parts/complete"
    fi
    say "putting the tree for $architecture together"
    rm -rf "$tree"
    mkdir -p "$home"/{bin,python/{bin,lib}} "$tree"/usr/{bin,share/doc/nicbench}
    cp "$parts/root/usr/bin/$PYTHON" "$home/python/bin/"
    cp -r "$parts/root/usr/lib/$PYTHON" "$home/python/lib/"
    cp "$parts/root/usr/sbin/bpftool" "$home/bin/"
    for file in "$parts"/root/usr/lib/"$triplet"/*.so.*; do
        cp --no-dereference "$file" "$home/python/lib/"
    done
    (cd "$home/python/lib/$PYTHON" && rm -rf test lib2to3 idlelib && cd lib-dynload && rm -f $UNUSED_MODULES)
    patchelf --set-rpath '$ORIGIN/../lib' "$home/python/bin/$PYTHON"
    patchelf --set-rpath '$ORIGIN/../python/lib' "$home/bin/bpftool"
    for file in "$home/python/lib/$PYTHON"/lib-dynload/*.so; do patchelf --set-rpath '$ORIGIN/../..' "$file"; done
    for file in "$home"/python/lib/*.so.*; do [ -L "$file" ] || patchelf --set-rpath '$ORIGIN' "$file"; done

    packages=$home/python/lib/$PYTHON/dist-packages
    install_packages_for "$architecture" "$wheel" "$packages"
    (cd "$packages" && rm -rf $UNUSED_PARTS && find . -type d -name tests -prune -exec rm -rf {} +)
    link_copies "$packages/pyarrow"
    # Their makers left the names of functions in: 19 MB, which no report of a crash needs.
    for file in typst/_typst cryptography/hazmat/bindings/_rust; do strip_for "$triplet" "$packages/$file.abi3.so"; done
    # Hashes in place of times, and names without this machine's folders: the same bytes in every build.
    find "$home" -name __pycache__ -prune -exec rm -rf {} +
    PYTHONHASHSEED=0 "$(package_python)" -m compileall -q -j 0 --invalidation-mode unchecked-hash \
        -s "$tree" -p / "$home/python/lib" >&2 || true
    cp packaging/nicbench "$tree/usr/bin/nicbench"
    chmod 755 "$tree/usr/bin/nicbench"
    .venv/bin/python packaging/manual.py "$tree/usr/share"
    mkdir -p "$tree/usr/share/doc/nicbench"
    .venv/bin/python packaging/materials.py tree "$tree/usr/share/doc/nicbench" "$parts/debs" "$packages"
    find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

# A Python of the version that the tree has, to compile for it.
package_python() {
    local found
    found=$(command -v "/usr/bin/$PYTHON" || command -v $PYTHON) ||
        fail "byte code for $PYTHON cannot be made" "apt-get install $PYTHON-minimal"
    echo "$found"
}

# The wheel $2 and all that it needs, by the hashes of requirements.lock, into folder $3.
install_packages_for() {
    local architecture=$1 wheel=$2 folder=$3 machine platform platforms=()
    machine=$(triplet_of "$architecture")
    machine=${machine%%-*}
    for platform in manylinux_2_{35,34,31,28,27,26,24,17,12,5} manylinux2014 manylinux2010 manylinux1; do
        platforms+=(--platform "${platform}_$machine")
    done
    .venv/bin/python packaging/closure.py >build/package/requirements.txt
    .venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-compile --only-binary :all: --target "$folder" \
        --python-version 3.11 --implementation cp "${platforms[@]}" --platform "linux_$machine" \
        --require-hashes --requirement build/package/requirements.txt >&2 ||
        fail "Python packages are not to be had for $architecture" "look at pip's message above"
    .venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-compile --no-index --target "$folder" \
        --python-version 3.11 --implementation cp "${platforms[@]}" "$wheel" >&2
}

strip_for() {
    if command -v "$1-strip" >/dev/null; then "$1-strip" --strip-unneeded "$2"; else strip --strip-unneeded "$2"; fi
}

# Files of folder $1 that are the same become links to one of them: a wheel has no links.
link_copies() {
    local sum file last='' first=''
    find "$1" -maxdepth 1 -name '*.so*' -type f -exec sha256sum {} + | sort | while read -r sum file; do
        if [ "$sum" = "$last" ]; then ln -sf "$(basename "$first")" "$file"; else last=$sum first=$file; fi
    done
}
