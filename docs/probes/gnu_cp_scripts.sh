#!/bin/bash
# GNU cp's own test scripts with `flatout` as cp: docs/cp.md, "How it is tested".
# gnu_cp_scripts.sh COREUTILS FLATOUT [SCRIPT...]: COREUTILS is the unpacked source of coreutils 9.1 (not built), FLATOUT the program. Run it as
# root, and as an ordinary user who is in two groups: setpriv --reuid=1000 --regid=1000 --groups=1000,100 gnu_cp_scripts.sh ...
set -eu
source=$(realpath "$1") program=$(realpath "$2")
shift 2
[ $# -gt 0 ] || set -- $(cd "$source" && ls tests/cp/*.sh | sed 's,.*/,,; s,.sh$,,')
export TMPDIR=$(mktemp -d)
cd "$TMPDIR"
mkdir src
cp "$program" src/cp
ln -s "$source/tests" tests
# What configure finds on Linux; no script needs another program of this build.
printf '#define %s 1\n' HAVE_OPENAT USE_ACL HAVE_CAP USE_XATTR HAVE_LINKAT HAVE_UTIMENSAT HAVE_LUTIMES > config.h
echo '/* #undef LINKAT_SYMLINK_NOTSUP */' >> config.h
export srcdir=$source top_srcdir=$source abs_srcdir=$source abs_top_srcdir=$source abs_top_builddir=$TMPDIR
export CONFIG_HEADER=$TMPDIR/config.h VERSION=9.1 PACKAGE_VERSION=9.1 LOCALE_FR=none LOCALE_FR_UTF8=none
export host_os=linux-gnu host_triplet=x86_64-pc-linux-gnu CC=cc AWK=awk EGREP='grep -E' EXEEXT='' MAKE=make PERL=perl
export SHELL=/bin/bash fail=0 built_programs='cp mv ls stat dd rm mkdir ln chmod touch cat timeout chown id install chroot df'
export RUN_EXPENSIVE_TESTS=yes RUN_VERY_EXPENSIVE_TESTS=yes NON_ROOT_USERNAME=nobody LC_ALL=C FLATOUT_RESUME=
export PATH=$TMPDIR/src:$PATH:/usr/sbin:/sbin
for name; do
    code=0
    CU_TEST_NAME=cp-$name bash "tests/cp/$name.sh" > "$name.log" 2>&1 9>&2 || code=$?
    case $code in
        0) echo "pass $name" ;;
        77) echo "skip $name: $(grep -o 'skipped test: .*' "$name.log" | tail -1)" ;;
        *) echo "FAIL $name: $TMPDIR/$name.log" ;;
    esac
done
