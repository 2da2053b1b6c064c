# Steps of scripts/package that put a tree (bundle.sh) into a .deb and an .rpm, by the tools of these formats themselves, which compress
# best; sourced, never run. Two packages of one tree are byte-equal: every file has the time of $SOURCE_DATE_EPOCH.
# shellcheck shell=bash disable=SC2154

# Whoever makes the package, by Debian's variables, else as the last commit says.
maintainer() {
    if [ -n "${DEBEMAIL:-}" ]; then echo "${DEBFULLNAME:-The nicbench maintainers} <$DEBEMAIL>"; else git log -1 --format='%an <%ae>'; fi
}

# Byte code is made where the package is installed, and removed with it: it belongs to the interpreter there.
COMPILE='/usr/lib/nicbench/python/bin/python3.11 -I -m compileall -q -j 0 --invalidation-mode unchecked-hash /usr/lib/nicbench/python/lib >/dev/null || true'
CLEAN='find /usr/lib/nicbench -name __pycache__ -prune -exec rm -rf {} +'

# A .deb of the tree $2, for architecture $1, in folder $3.
deb_of() {
    local architecture=$1 tree=$2 folder=build/package/deb-$1 documents
    rm -rf "$folder"
    cp --archive --link "$tree" "$folder"
    documents=$folder/usr/share/doc/nicbench
    mkdir -p "$folder/DEBIAN" "$folder/usr/share/lintian/overrides"
    install -m 644 packaging/copyright "$documents/copyright"
    {
        printf 'nicbench (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n' "$version"
        printf ' -- %s  %s\n' "$(maintainer)" "$(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")"
    } | gzip -9n >"$documents/changelog.gz"
    install -m 644 packaging/lintian-overrides "$folder/usr/share/lintian/overrides/nicbench"
    printf '#!/bin/sh\nset -e\nif [ "$1" = configure ]; then %s; fi\n' "$COMPILE" >"$folder/DEBIAN/postinst"
    printf '#!/bin/sh\nset -e\n%s\n' "$CLEAN" >"$folder/DEBIAN/prerm"
    chmod 755 "$folder/DEBIAN/postinst" "$folder/DEBIAN/prerm"
    (cd "$folder" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    cat >"$folder/DEBIAN/control" <<CONTROL
Package: nicbench
Version: $version
Architecture: $architecture
Section: net
Priority: optional
Maintainer: $(maintainer)
Installed-Size: $(du --summarize --apparent-size --block-size=1024 "$tree" | cut --fields=1)
Depends: libc6 (>= 2.36), libgcc-s1, libstdc++6, iproute2, ethtool, pciutils, nftables, procps
Description: NIC performance lab in one tool
 Measures throughput and latency of network cards and devices (RFC 2544), and
 streams, shares and storage over networks: one bench file gives one report.
CONTROL
    find "$folder/usr" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zzstd -z12 --build "$folder" "$3" >&2
}

# An .rpm of the tree $2, for architecture $1, in folder $3.
rpm_of() {
    local machine folder=build/package/rpm-$1
    machine=$(triplet_of "$1")
    machine=${machine%%-*}
    command -v rpmbuild >/dev/null || fail "an .rpm cannot be made" "apt-get install rpm"
    rm -rf "$folder"
    rpmbuild --quiet -bb --target "$machine" --define "_topdir $PWD/$folder" --define "_rpmdir $PWD/$3" \
        --define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
        --define "nicbench_version $version" --define "nicbench_maintainer $(maintainer)" \
        --define "nicbench_changed $(LC_ALL=C date --utc --date="@$SOURCE_DATE_EPOCH" +'%a %b %d %Y')" --define "nicbench_tree $PWD/$2" packaging/nicbench.spec >&2
    rm -rf "$folder"
}
