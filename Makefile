# mot: memory-optimized tables for PostgreSQL
#
#   make            build mot.so for the server that PG_CONFIG names, and
#                   mot_jit.so, which compiles statements with LLVM
#   make install    install it there
#   make deps       install the Debian packages that are missing (root)
#   make check      all tests, on private servers; installs nothing (VERSIONS=18: with
#                   check-versions beside it)
#   make check-versions  the main tests with servers of other versions: VERSIONS="17 18"
#   make coverage   lines of engine, wal and xact that tests reach (gcov)
#   make check-ecosystem  clients from their registries (ORMs, migration tools,
#                   poolers, backup tools); needs the network: NAMES="django java"
#   make crash      crash cycles for longer: CYCLES=200 SEED=n TEST=crash_cycles
#   make pgregress  PostgreSQL's own regression files, heap against mot
#   make demo       deps, build, install, and a side-by-side run against heap
#   make bench      all figures, against heap tables, unlogged ones and Redis,
#                   with plots: QUICK=yes PARTS="tatp ycsb"; its parts alone:
#                   bench-statements, bench-tpcc, bench-loads (TATP, YCSB, Redis);
#                   bench-instructions (counted by valgrind);
#                   others: bench-durability (log, checkpoints, loading),
#                   bench-isolation (long readers), bench-engine (no server),
#                   bench-compile (how long compiling takes), bench-analysis (reports)
#   make figures    what make bench has measured into README.md and docs/
#   make indent     lay the sources out as PostgreSQL's are
#   make dist       what is committed as build/mot-VERSION.tar.gz and .zip (PGXN's);
#                   Debian packages: dpkg-buildpackage in that
#
# PG_CONFIG=...          another server than the one in PATH
# MOT_STOP_POINTS=1      a test build: named points where a test can hold a backend
# MOT_FAULTS=1           a test build: named points where mot.fault makes a process die
# JIT=no                 without mot_jit.so (which is also left out, with a note,
#                        where there is no LLVM to build with; JIT=yes: an error)
# WERROR=                warnings are only warnings
#
# The module itself is built by module.mk, with PostgreSQL's PGXS.  It is a
# file of its own because everything here has to work before there is a
# pg_config, and because PGXS has a "check" target that only says no.

SHELL = /bin/bash
PG_CONFIG ?= pg_config
WERROR ?= -Werror
export PG_CONFIG WERROR MOT_STOP_POINTS MOT_FAULTS

.DEFAULT_GOAL := all

MODULE_TARGETS = all install uninstall installdirs installcheck

.PHONY: $(MODULE_TARGETS) clean distclean maintainer-clean

$(MODULE_TARGETS):
	@command -v $(PG_CONFIG) >/dev/null || { \
		echo "pg_config not found: run \"make deps\", or name a server with PG_CONFIG=..." >&2; exit 1; }
	@$(MAKE) --no-print-directory -f module.mk $@
ifneq ($(JIT),no)
	@why=$$(tools/jit why); \
	if [ -z "$$why" ]; then $(MAKE) --no-print-directory -C jit -f module.mk $@ LLVM_CONFIG="$$(tools/jit config)"; \
	elif [ "$(JIT)" = yes ]; then echo "mot_jit.so cannot be built: $$why" >&2; exit 1; \
	else echo "note: without mot_jit.so: $$why"; fi
endif

clean distclean maintainer-clean:
	find src jit test/module \( -name '*.o' -o -name '*.d' -o -name '*.bc' -o -name '*.a' -o -name '*.so' \) -delete
	rm -f mot.so libmot.a .buildflags .objects jit/.buildflags jit/.objects
	rm -rf build results output_iso tmp_check tmp_check_iso regression.diffs regression.out

# ------------------------------------------------------------------- tests

CHECK_STAGES = engine asan tsan regress isolation jit server pgtap clients

.PHONY: deps check lint check-versions $(CHECK_STAGES:%=check-%)

deps:
	@tools/deps

check: all lint
	@test/run

lint:
	@tools/lint

check-versions:
	@test/versions

check-engine check-asan check-tsan: check-%:
	@test/run $*

check-regress check-isolation check-jit check-server check-pgtap check-clients: check-%: all
	@test/run $*

.PHONY: crash pgregress check-ecosystem coverage

coverage:
	@test/coverage/run

check-ecosystem: all
	@test/ecosystem/run $(NAMES)

crash: all
	@test/crash/run

pgregress: all
	@test/pgregress/run

# ----------------------------------------------------------------- figures

.PHONY: demo bench bench-statements bench-durability bench-tpcc bench-loads bench-isolation bench-instructions bench-engine bench-compile bench-analysis figures

demo: deps
	@mkdir -p build
	@echo "building and installing ..."
	@$(MAKE) --no-print-directory -j"$$(nproc)" install >build/demo.log 2>&1 || { cat build/demo.log >&2; exit 1; }
	@bench/demo

bench: all
	@bench/all

bench-statements: all
	@bench/run

figures:
	@bench/figures

bench-durability: all
	@bench/durability

bench-tpcc: all
	@bench/tpcc

bench-loads: all
	@bench/loads

bench-isolation: all
	@bench/isolation

bench-instructions: all
	@bench/instructions

bench-engine:
	@$(MAKE) -s -C bench/engine run

bench-compile: all
	@bench/compile

bench-analysis: all
	@bench/analysis

# ----------------------------------------------------------------- release

.PHONY: dist

DIST = mot-$(shell sed -n 's/^   "version": "\(.*\)",/\1/p' META.json)

dist:
	@mkdir -p build
	@for kind in tar.gz zip; do \
		git archive --format=$$kind --prefix=$(DIST)/ -o build/$(DIST).$$kind HEAD && echo build/$(DIST).$$kind || exit; \
	done

# ------------------------------------------------------------------ layout

.PHONY: indent

indent:
	@tools/indent
