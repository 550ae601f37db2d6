# What scripts do with cp: a package is built, an image layered, a backup made, a boot image filled.
# Run twice, with GNU cp and with flatout in its place: the trees must be equal.
set -eu
umask 022

# --- sources -----------------------------------------------------------------------------------
mkdir -p src/bin src/lib/plugins src/man/man1 src/share/locale/de src/etc/app.d src/include/app
echo '#!/bin/sh' > src/bin/app;        chmod 755 src/bin/app
echo 'helper'    > src/bin/helper;     chmod 4755 src/bin/helper
echo 'library'   > src/lib/libapp.so.1.2.3
ln -s libapp.so.1.2.3 src/lib/libapp.so.1
ln -s libapp.so.1     src/lib/libapp.so
for plugin in a b c d; do echo "$plugin" > "src/lib/plugins/$plugin.so"; done
ln src/lib/plugins/a.so src/lib/plugins/a-again.so
echo 'page'      > src/man/man1/app.1
ln -s app.1 src/man/man1/helper.1
echo 'Hallo'     > src/share/locale/de/app.mo
echo 'key=value' > src/etc/app.conf;   chmod 640 src/etc/app.conf
echo 'one' > src/etc/app.d/10-one;  echo 'two' > 'src/etc/app.d/20 two'
echo 'header' > src/include/app/app.h
: > src/etc/app.d/empty
truncate -s 1M src/share/sparse
find src -exec touch -h -d '2020-02-02 02:02:02' {} +

# --- make install, without install(1) ------------------------------------------------------------
D=stage
mkdir -p $D/usr/bin $D/usr/lib $D/usr/share/man/man1 $D/usr/include $D/etc
cp src/bin/app src/bin/helper $D/usr/bin/
chmod 755 $D/usr/bin/*
cp -d src/lib/libapp.so* $D/usr/lib
cp -r src/lib/plugins $D/usr/lib/plugins
cp -P src/man/man1/*.1 $D/usr/share/man/man1
cp -R src/share/locale $D/usr/share/
cp -f src/etc/app.conf $D/etc/
cp -rp src/etc/app.d $D/etc/
cp -a src/include/. $D/usr/include
cp -f src/bin/app $D/usr/bin/app

# --- debian/rules --------------------------------------------------------------------------------
P=debian
mkdir -p $P/app/usr/share/doc/app $P/app-dev/usr $P/tmp
cp -a $D/. $P/tmp
cp -dR --preserve=all $P/tmp/usr/lib $P/app/usr/
(cd $P/tmp && cp -a --parents usr/include usr/share/man/man1/app.1 ../app-dev)
cp -p src/etc/app.conf $P/app/usr/share/doc/app/app.conf.example
cp --no-preserve=mode,ownership src/bin/helper $P/app/usr/share/doc/app/
cp -n src/etc/app.conf $P/app/usr/share/doc/app/app.conf.example
cp -al $P/app/usr/lib $P/app/usr/lib-linked
cp -t $P/app/usr/share/doc/app src/man/man1/app.1 src/etc/app.d/*
cp -T src/etc/app.conf $P/app/usr/share/doc/app/config

# --- a container's layers ------------------------------------------------------------------------
mkdir -p layer/base layer/top/etc layer/top/usr/lib
cp -a $D/. layer/base/
cp -a layer/base layer/merged
echo 'changed' > layer/top/etc/app.conf
ln -s ../lib layer/top/usr/lib/self
touch -d '2021-01-01' layer/top/etc/app.conf layer/top/etc layer/top/usr/lib layer/top/usr
cp -a layer/top/. layer/merged/
cp -au layer/base/. layer/merged/
cp -rn src/etc/. layer/merged/etc
cp -rL src/lib layer/merged/followed
cp -rH src/lib/libapp.so layer/merged/one
cp -x -a layer/base/usr/. layer/merged/opt-usr
cp --remove-destination src/bin/app layer/merged/usr/lib/libapp.so.1
cp --attributes-only -p src/etc/app.conf layer/merged/etc/app.conf

# --- a backup every night --------------------------------------------------------------------------
mkdir -p backup
cp -a src backup/day1
cp -al backup/day1 backup/day2
echo 'new' > src/etc/app.d/30-new
echo 'key=other' > src/etc/app.conf
touch -d '2022-02-02' src/etc/app.d/30-new src/etc/app.conf src/etc/app.d
cp -au --remove-destination src/. backup/day2
cp -b src/etc/app.conf backup/conf
echo 'third' > src/etc/app.conf; touch -d '2022-03-03' src/etc/app.conf
cp -b src/etc/app.conf backup/conf
cp --backup=numbered -p src/etc/app.conf backup/conf
cp --backup=numbered -p src/etc/app.conf backup/conf
cp -S .old --backup=simple src/bin/app backup/conf
cp -a --sparse=always src/share/sparse backup/sparse
cp --reflink=auto --sparse=auto src/share/sparse backup/again

# --- a boot image ------------------------------------------------------------------------------------
I=initramfs
mkdir -p $I/bin $I/lib $I/etc $I/dev $I/conf
for tool in app helper; do cp -p "src/bin/$tool" "$I/bin/$tool"; done
cp -aL src/lib/libapp.so.1 $I/lib/libapp.so.1
cp -pP src/lib/libapp.so $I/lib/
cp -s "$PWD/src/bin/app" $I/bin/absolute && rm $I/bin/absolute
(cd $I/bin && cp -s app init)
cp /dev/null $I/etc/fstab
cp -R src/etc/app.d $I/conf
mkfifo $I/dev/fifo
cp -a $I/dev $I/dev2
echo 'from a pipe' | cp /dev/stdin $I/etc/piped
cp $I/etc/piped /dev/stdout > $I/etc/through
cp -r $I/bin $I/lib $I/etc $I/conf/

# --- what fails, and does not stop the script --------------------------------------------------------
cp src out-of-directories 2> /dev/null || echo "no -r: $?" >> results
cp nowhere "$D" 2> /dev/null || echo "nothing there: $?" >> results
cp src/bin/app src/bin/helper nowhere 2> /dev/null || echo "no directory: $?" >> results
cp src/bin/app src/bin/app 2> /dev/null || echo "the same: $?" >> results
cp -r src src/copy 2> /dev/null || echo "into itself: $?" >> results
rm -rf src/copy; touch -d '2020-01-01' src
find . -type l -prune -o -newermt '2023-01-01' -exec touch -d '2020-01-01' {} +
