# sandbox.sh
#	  Private servers for tests, the demo and benchmarks; source it.
#
# A sandbox is a directory under /tmp that belongs to an unprivileged user
# (the server refuses to run as root, and a clone may lie where only root can
# read).  It holds a copy of the server's own programs, which find their
# libraries relative to themselves, with mot installed into the copy: the
# server that PG_CONFIG names is read, never changed.  Clusters listen on a
# socket in the sandbox only.  When the script ends, however it ends, the
# clusters stop and the directory goes; before that the function that
# SANDBOX_AT_END names is called, which stops what the script has started.

SANDBOX=
SANDBOX_USER=
HUGE_PAGES_BEFORE=

sandbox_die()
{
	echo "$(basename "$0"): $*" >&2
	exit 1
}

# Who runs the servers: ourselves, or as root an ordinary account.
sandbox_pick_user()
{
	if [ "$(id -u)" != 0 ]; then
		SANDBOX_USER=$(id -un)
		return
	fi
	for SANDBOX_USER in postgres mottest; do
		! id "$SANDBOX_USER" >/dev/null 2>&1 || return 0
	done
	useradd --system --no-create-home --shell /bin/sh "$SANDBOX_USER"
}

# Run a command as that user, inside the sandbox.
as_user()
{
	if [ "$(id -u)" != 0 ]; then
		(cd "$SANDBOX" && HOME="$SANDBOX" "$@")
	else
		(cd "$SANDBOX" && HOME="$SANDBOX" runuser -u "$SANDBOX_USER" -- "$@")
	fi
}

# children_of PID: numbers of its child processes, a line each (a bare system has no pgrep)
children_of()
{
	local stat line ppid
	for stat in /proc/[0-9]*/stat; do
		{ read -r line <"$stat"; } 2>/dev/null || continue
		# the name may hold anything, parentheses and blanks, too
		read -r _ ppid _ <<<"${line##*) }"
		[ "$ppid" != "$1" ] || echo "${line%% *}"
	done
}

sandbox_stop_clusters()
{
	local pidfile
	[ -n "$SANDBOX" ] || return 0
	for pidfile in "$SANDBOX"/*/postmaster.pid; do
		[ -f "$pidfile" ] || continue
		as_user "$PGBIN/pg_ctl" -s -w -D "$(dirname "$pidfile")" -m immediate stop || true
	done
}

# small disks that a test run has mounted
sandbox_unmount()
{
	local disk
	for disk in "$SANDBOX"/small/*; do
		! mountpoint -q "$disk" || umount -l "$disk"
	done
}

sandbox_end()
{
	local status=$?
	trap - EXIT INT TERM HUP
	if [ -n "$SANDBOX" ]; then
		if [ "$status" != 0 ] && [ -n "${SANDBOX_SHOW_LOGS:-}" ]; then
			tail -n 20 "$SANDBOX"/*.log >&2 2>/dev/null || true
		fi
		[ -z "${SANDBOX_AT_END:-}" ] || "$SANDBOX_AT_END" || true
		sandbox_stop_clusters
		[ -z "$HUGE_PAGES_BEFORE" ] || echo "$HUGE_PAGES_BEFORE" >/proc/sys/vm/nr_hugepages
		sandbox_unmount
		rm -rf "$SANDBOX"
	fi
	exit "$status"
}

# sandbox_begin NAME: make the directory and see to its end
sandbox_begin()
{
	sandbox_pick_user
	trap sandbox_end EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
	SANDBOX=$(mktemp -d "/tmp/mot-$1.XXXXXX")
	mkdir "$SANDBOX/socket" "$SANDBOX/tmp"
	chmod 755 "$SANDBOX"
	[ "$(id -u)" != 0 ] || chown "$SANDBOX_USER:" "$SANDBOX" "$SANDBOX/socket" "$SANDBOX/tmp"

	# nothing of the caller's surroundings reaches the servers and clients
	local v
	for v in $(compgen -v | grep -E '^PG[A-Z]*$' || true); do
		case $v in PGBIN|PGLIB|PGSHARE) ;; *) unset "$v" ;; esac
	done
	# (the server's test modules take LC_ALL away, and initdb then looks at LANG)
	for v in $(compgen -v LC_); do unset "$v"; done
	export LC_ALL=C.UTF-8 LANG=C.UTF-8 TMPDIR="$SANDBOX/tmp"
	export PGHOST="$SANDBOX/socket" PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
	umask 022
}

# Use a server where it is installed.
sandbox_use_server()
{
	local pg_config=${PG_CONFIG:-pg_config}
	command -v "$pg_config" >/dev/null || sandbox_die "pg_config not found: run \"make deps\" or set PG_CONFIG"
	PGBIN=$("$pg_config" --bindir)
	PGLIB=$("$pg_config" --pkglibdir)
	PGSHARE=$("$pg_config" --sharedir)
	PGXSDIR=$(dirname "$(dirname "$("$pg_config" --pgxs)")")
	[ -x "$PGBIN/postgres" ] || sandbox_die "no PostgreSQL server in $PGBIN: run \"make deps\""
	export PATH="$PGBIN:$PATH"
}

# Use a copy of it, with the mot of this tree (TOP, or another one) installed.
sandbox_copy_server()
{
	sandbox_use_server
	local root="$SANDBOX/server" tree=${1:-$TOP} dir libraries
	# a server that was built, and not installed, may lie where only we can read: its libraries come
	# along
	libraries=$("$PGBIN/pg_config" --libdir)
	case $libraries in
		/usr/*) libraries= ;;
		*)
			mkdir -p "$root$libraries"
			find "$libraries" -maxdepth 1 -name '*.so*' -exec cp -P -t "$root$libraries" {} +
			export LD_LIBRARY_PATH="$root$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
			;;
	esac
	for dir in "$PGBIN" "$PGLIB" "$PGSHARE"; do
		mkdir -p "$root$dir"
		tar -C "$dir" --exclude=./bitcode --exclude=./man -cf - . | tar -C "$root$dir" --no-same-owner -xf -
	done
	PGBIN=$root$PGBIN
	PGLIB=$root$PGLIB
	PGSHARE=$root$PGSHARE
	[ ! -d "$root$PGXSDIR" ] || PGXSDIR=$root$PGXSDIR
	[ "$("$PGBIN/pg_config" --pkglibdir)" = "$PGLIB" ] ||
		sandbox_die "the server in ${PGBIN#"$root"} does not work from a copy of its directories"
	rm -f "$PGLIB"/mot.so "$PGLIB"/mot_jit.so "$PGSHARE"/extension/mot.control "$PGSHARE"/extension/mot--*.sql
	sandbox_install_module "$tree/mot.so"
	[ ! -f "$tree/jit/mot_jit.so" ] || install -m 755 "$tree/jit/mot_jit.so" "$PGLIB/mot_jit.so"
	install -m 644 "$tree/mot.control" "$tree"/mot--*.sql "$PGSHARE/extension/"
	install -m 755 "$tree/tools/mot_upgrade" "$PGBIN/mot_upgrade"
	# (tests put scripts of other versions there)
	[ "$(id -u)" != 0 ] || chown "$SANDBOX_USER:" "$PGSHARE/extension" "$PGSHARE/extension/mot.control"
	export PATH="$PGBIN:$PATH"
	[ -n "${LOCPATH:-}" ] || sandbox_locales
}

# glibc's locales that tests sort by, made once for each tree; servers find these, and no others
sandbox_locales()
{
	local cache=$TOP/build/locales name
	mkdir -p "$cache" "$SANDBOX/locales"
	for name in en_US de_DE; do
		[ ! -d "$cache/$name.utf8" ] || continue
		# (it warns of what is not as POSIX has it)
		localedef -i "$name" -f UTF-8 "$cache/$name.$$" >/dev/null 2>&1 || true
		[ -f "$cache/$name.$$/LC_COLLATE" ] ||
			sandbox_die "localedef makes no locale $name.utf8: run \"make deps\""
		mv -T "$cache/$name.$$" "$cache/$name.utf8" 2>/dev/null || rm -rf "${cache:?}/$name.$$"
	done
	cp -r "$cache"/*.utf8 "$SANDBOX/locales/"
	for name in /usr/lib/locale/C.*; do
		[ ! -d "$name" ] || ln -s "$name" "$SANDBOX/locales/"
	done
	export LOCPATH="$SANDBOX/locales"
}

# sandbox_copy_another TREE: the server that PG_CONFIG names, beside the one in use, with that
# tree's mot; its prefix is printed
sandbox_copy_another()
{
	(sandbox_copy_server "$1" && dirname "$PGBIN")
}

# another build of the module in the copy
sandbox_install_module()
{
	rm -f "$PGLIB/mot.so"
	install -m 755 "$1" "$PGLIB/mot.so"
}

# cluster_init NAME: a new cluster, not started; more settings on stdin
cluster_init()
{
	local data="$SANDBOX/$1"
	as_user "$PGBIN/initdb" -D "$data" -U postgres -A trust -N --encoding=UTF8 \
		--locale="${CLUSTER_LOCALE:-C}" >"$SANDBOX/tmp/initdb.log" 2>&1 ||
		{ cat "$SANDBOX/tmp/initdb.log" >&2; sandbox_die "initdb failed"; }
	{
		echo "listen_addresses = ''"
		echo "unix_socket_directories = '$SANDBOX/socket'"
		echo "port = $PGPORT"
		echo "fsync = off"
		echo "log_line_prefix = '%m [%p] %q%a '"
		cat
	} >>"$data/postgresql.conf"
}

# have so many free huge pages of 2 MB until the sandbox ends
sandbox_huge_pages()
{
	local need=$1 total free kept
	read -r total free kept < <(awk '/^HugePages_(Total|Free|Rsvd)/ {printf "%d ", $2} END {print ""}' /proc/meminfo)
	if [ "$((free - kept))" -lt "$need" ]; then
		[ "$(id -u)" = 0 ] || sandbox_die "$need huge pages are needed: vm.nr_hugepages = $((total - free + kept + need))"
		HUGE_PAGES_BEFORE=${HUGE_PAGES_BEFORE:-$(cat /proc/sys/vm/nr_hugepages)}
		echo "$((total - free + kept + need))" >/proc/sys/vm/nr_hugepages
		read -r free kept < <(awk '/^HugePages_(Free|Rsvd)/ {printf "%d ", $2} END {print ""}' /proc/meminfo)
		[ "$((free - kept))" -ge "$need" ] || sandbox_die "the system has no room for $need huge pages"
	fi
}

cluster_start()
{
	! declare -F cluster_before_start >/dev/null || cluster_before_start "$1"
	as_user "$PGBIN/pg_ctl" -s -w -t 180 -D "$SANDBOX/$1" -l "$SANDBOX/$1.log" start ||
		{ tail -n 30 "$SANDBOX/$1.log" >&2; sandbox_die "the server did not start"; }
}

cluster_stop()
{
	as_user "$PGBIN/pg_ctl" -s -w -D "$SANDBOX/$1" -m fast stop
}
