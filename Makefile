# The commands that a developer of vestige uses every day; `make` alone prints the list. PY chooses a Python:
# make develop PY=3.12

ifndef PY
PY := $(shell scripts/find_python.sh --default)
endif
SOURCES := pyproject.toml meson.build meson_options.txt scripts/embed.py \
           $(shell find adapters include src python -name '*.[ch]' -o -name '*.cpp' -o -name '*.py' \
             -o -name '*.pyi' -o -name '*.html' -o -name '*.js' -o -name '*.css' -o -name '*.sql' -o -name py.typed -o -name meson.build)

# Compile modules once, not in each of the thousands of processes of the tests, whatever the environment says:
# importing torch without compiled files takes three times as long.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo 'make develop [PY=3.12]  build and install vestige into .venv/<version>'
	@echo 'make demo    [PY=3.12]  trace a small program and show its report'
	@echo 'make lint               format, likely mistakes, types, spelling, lengths, unused code; CHECKS=ruff runs one'
	@echo 'make quick   [PY=3.12]  the tests in C and the quick ones in Python: two minutes'
	@echo 'make test               everything, on every Python from 3.11 to 3.15'
	@echo 'make test-c             one part: lint layers c asan tsan install counts clients docs torch python-3.12 ...'
	@echo 'make docs               the documentation as a site, in build/docs/html'
	@echo 'make check NAME=soak    one of the proofs that take longer; without NAME their list; make check-long runs them'
	@echo 'make fuzz               look for inputs that break reading or exporting, SECONDS=60 for each target'
	@echo 'make wheels             wheels that install without a compiler, and the sdist, in dist; PYTHONS=3.12 makes one'
	@echo 'make bench   [PY=3.12]  measure the overhead beside other profilers; ARGS=--quick is shorter'
	@echo 'make bench-counts       instructions beside committed figures, or BASE=<commit>: fails above 3 %'
	@echo 'make clean              remove all that was built, virtual environments too'

develop: .venv/$(PY)/.installed
	@[ ! -e .venv/$(PY)/.quick ] || scripts/install.sh $(PY)
	@echo 'vestige is installed: .venv/$(PY)/bin/vestige'

demo: develop
	@scripts/demo.sh $(PY)

test: .venv/tools/.made
	@scripts/need.sh test
	@scripts/test.sh

# All checks, or those in CHECKS.
lint: .venv/lint/.made .venv/tools/.made
	@scripts/lint.sh $(CHECKS)

# The daily loop: two minutes, on one Python, without the tests in slow.txt.
quick:
	@PY=$(PY) scripts/test.sh c quick

bench:
	@scripts/bench.sh $(ARGS)

# Compares counts of instructions with the committed counts, or with those of commit BASE; fails above 3 %.
bench-counts: .venv/$(PY)/.installed
	@BASE=$(BASE) scripts/bench_counts.sh $(PY) $(ARGS)

# The site, from docs/ and from the package itself.
docs: .venv/$(PY)/.installed .venv/docs/.tools-$(PY)
	@.venv/docs/bin/python docs/build.py

# Wheels for every installed Python, or for those in PYTHONS, and the sdist.
wheels: .venv/wheels/.made
	@$(MAKE) --no-print-directory $$(echo $(or $(PYTHONS),$$(scripts/find_python.sh --all)) | sed 's|[^ ]*|.venv/&/.tools|g')
	@scripts/wheels/build.sh $(PYTHONS)

# The same in pypa's containers, which needs docker: the release workflow publishes these wheels.
# ARGS=--print-build-identifiers prints the wheels that would be built, without docker.
wheels-containers: .venv/wheels/.containers
	@.venv/wheels/bin/cibuildwheel --platform linux --output-dir dist $(ARGS)

sdist: .venv/tools/.made
	@mkdir -p dist
	@PATH="$(CURDIR)/.venv/tools/bin:$$PATH" .venv/tools/bin/python scripts/wheels/sdist.py dist

# Checks the steps of the page on releases, as far as possible; ARGS=--dist also checks dist/.
release-check:
	@python3 scripts/release_check.py $(ARGS)

fuzz: .venv/tools/.made
	@PATH="$(CURDIR)/.venv/tools/bin:$$PATH" scripts/fuzz.sh $(SECONDS)

clean:
	rm -rf build dist .venv

need:
	@scripts/need.sh

# Every Python has its own environment; stamp files in it mark finished steps.
.venv/tools/.made: scripts/venv_tools.sh | need
	@scripts/venv_tools.sh
	@touch $@

.venv/lint/.made: scripts/lint/requirements.txt scripts/lint/package-lock.json scripts/venv_lint.sh
	@scripts/venv_lint.sh
	@touch $@

.venv/wheels/.made: scripts/wheels/requirements.txt | .venv/tools/.made
	@scripts/venv_wheels.sh
	@touch $@

.venv/wheels/.containers: scripts/wheels/requirements-containers.txt .venv/wheels/.made
	@.venv/wheels/bin/python -m pip install -qq --disable-pip-version-check -r $<
	@touch $@

.venv/%/.tools: | .venv/tools/.made
	@scripts/venv.sh $*
	@touch $@

.venv/%/.installed: .venv/%/.tools $(SOURCES)
	@scripts/install.sh $*
	@touch $@

# Pythons in QUICK use the core that the C tests build; `make test` sets QUICK.
export QUICK
$(QUICK:%=.venv/%/.installed): build/c/.core

build/c/.core: $(SOURCES) | .venv/tools/.made
	@PATH="$(CURDIR)/.venv/tools/bin:$$PATH" scripts/test_part.sh core
	@touch $@

# Install one after the other: installing vestige looks for torch, and must not find half of it.
.venv/%/.test-basics: .venv/%/.tools tests/requirements.txt
	@.venv/$*/bin/python -m pip install -qq --disable-pip-version-check --no-compile -r tests/requirements.txt
	@touch $@

# Without the GIL, leave these out: gevent has no wheel for such builds, and torch's tests are for builds with
# the GIL.
.venv/%t/.test-basics: .venv/%t/.tools tests/requirements.txt
	@grep -v '^gevent' tests/requirements.txt | .venv/$*t/bin/python -m pip install -qq --disable-pip-version-check \
		--no-compile --only-binary :all: -r /dev/stdin
	@touch $@

.venv/%t/.test-tools: .venv/%t/.test-basics | .venv/%t/.installed
	@touch $@

.venv/%/.test-tools: .venv/%/.test-basics tests/requirements-torch.txt | .venv/%/.installed
	@.venv/$*/bin/python -m pip install -qq --disable-pip-version-check --no-compile -r tests/requirements-torch.txt 2>/dev/null || \
		echo 'no torch for Python $*: its tests are skipped'
	@.venv/$*/bin/python -m vestige.torch.build
	@touch $@

# Programs of other projects have a separate environment, on top of the default Python's.
.venv/clients/.tools-$(PY): tests/clients/requirements.txt scripts/venv_clients.sh | .venv/$(PY)/.test-tools
	@scripts/venv_clients.sh $(PY)
	@touch $@

# The tools that build the site have one, too.
.venv/docs/.tools-$(PY): docs/requirements.txt scripts/venv_docs.sh | .venv/$(PY)/.tools
	@scripts/venv_docs.sh $(PY)
	@touch $@

# The parts of `make test`. The C tests use Meson from .venv/tools, and compile without warnings.
test-clients test-counts test-docs test-torch test-hooks test-quick test-elsewhere test-python-%: export WERROR = 1

test-lint: .venv/lint/.made .venv/tools/.made FORCE
	@scripts/test_part.sh lint

test-layers: FORCE
	@scripts/test_part.sh layers

test-c: build/c/.core
test-c test-asan test-tsan: test-%: .venv/tools/.made FORCE
	@PATH="$(CURDIR)/.venv/tools/bin:$$PATH" scripts/test_part.sh $*

# Runs a longer proof, with the options that scripts/check.sh defines; without NAME, lists the proofs.
check: .venv/tools/.made FORCE
	@PY=$(PY) ARGS='$(ARGS)' VERSION='$(VERSION)' scripts/check.sh $(NAME)

check-long: .venv/tools/.made FORCE
	@PY=$(PY) scripts/check.sh long

test-install: test-c
	@PATH="$(CURDIR)/.venv/tools/bin:$$PATH" scripts/test_part.sh install

# Runs in a folder whose name has a space and a non-ASCII letter. Uses this clone's test packages, which must
# all be installed, because half of a torch cannot be imported.
test-elsewhere: build/c/.core .venv/$(PY)/.installed .venv/$(PY)/.test-tools FORCE
	@PY=$(PY) scripts/test_part.sh elsewhere

test-quick: .venv/$(PY)/.installed .venv/$(PY)/.test-basics FORCE
	@PY=$(PY) scripts/test_part.sh quick

test-clients: build/c/.core .venv/$(PY)/.installed .venv/clients/.tools-$(PY) FORCE
	@scripts/test_part.sh clients

# The examples use the packages of the clients.
test-docs: .venv/$(PY)/.installed .venv/docs/.tools-$(PY) .venv/clients/.tools-$(PY) FORCE
	@scripts/test_part.sh docs

# Like `make bench-counts`, compared with the committed counts.
test-counts: .venv/$(PY)/.installed FORCE
	@PY=$(PY) scripts/test_part.sh counts

test-torch test-hooks: test-%: .venv/$(PY)/.installed .venv/$(PY)/.test-tools FORCE
	@PY=$(PY) scripts/test_part.sh $*

test-python-%: .venv/%/.installed .venv/%/.test-tools FORCE
	@scripts/test_part.sh python-$*

FORCE:
.SECONDARY:
.DELETE_ON_ERROR:
.PHONY: help develop demo docs lint quick test check check-long bench bench-counts fuzz wheels wheels-containers sdist release-check clean need FORCE
