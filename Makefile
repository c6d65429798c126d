# make try       the main job: an example event, a real fault, a kernel's headers; V=1 lists all
# make test      the test suite, with all that it needs; its end says what was left out
# make test-all  the same, and what takes minutes each: kernels built and recorded, their catalogue, a release
# make bench     the measured promises, one line each
# make lint      ruff, mypy and the import contract (part of make test)
# make docs      the documentation site in build/docs/html; warnings are errors
# make release   sdist and wheel in dist/, built twice with the same bytes, checked and installed once
# make wheels    wheels for each Python here, glibc 2.28 and musl, x86_64 and aarch64, built twice; PYTHONS=... tries more
# make vsix      the extension of VS Code in dist/, with its libraries from npm
# make deb       Debian packages in dist/, checked by lintian and installed in a clean system; root only
# make fuzz      fuzz every reader, MINUTES=30 in all
#
# Each sets up what it needs in .venv; the second run is fast.  PYTHON=... chooses the Python.

VENV := .venv
RUN := $(VENV)/bin/python
MINUTES ?= 30
PYTEST_ARGS ?=
# Each guest takes a GiB.
JOBS ?= $(shell n=$$(nproc); echo $$((n < 8 ? n : 8)))

.PHONY: help try test test-all bench lint docs release wheels vsix deb fuzz setup debian spark clean
help:
	@sed -n 's/^# \{0,1\}//;1,11p' Makefile

# Byte code as in an installed package, also where PYTHONDONTWRITEBYTECODE is set: without it each command compiles
# its modules again, 0.2 s of CPU.
setup: $(VENV)/.ready
	@$(RUN) -m compileall -q src

$(VENV)/.ready: pyproject.toml setup.py $(wildcard csrc/*.[ch] csrc/*/*.[ch]) tools/setup tools/make-venv tools/find-python
	@sh tools/setup $(VENV)
	@touch $@

debian: setup
	@$(RUN) tools/debian.py tests

# Spark is 450 MB, so only the tests that take minutes use it.
spark: setup
	@$(RUN) tools/debian.py spark
	@$(RUN) tools/dev_requirements.py spark >$(VENV)/spark-requirements.txt
	@$(RUN) -m pip install -qq --disable-pip-version-check -r $(VENV)/spark-requirements.txt \
		|| echo "make: no pyspark: the tests of Spark are left out" >&2

try: setup
	@$(RUN) tools/try_all.py $(V:1=-v)

test: setup debian
	@TRACEPOINT_TESTS=all $(RUN) -m pytest -n $(JOBS) -m "not bench and not fuzz and not slow" $(PYTEST_ARGS)

test-all: setup debian spark
	@TRACEPOINT_TESTS=all $(RUN) -m pytest -n $(JOBS) -m "not bench and not fuzz" $(PYTEST_ARGS)

bench: setup debian
	@$(RUN) tools/debian.py bench
	@$(RUN) -m benchmarks

lint: setup
	@$(RUN) -m pytest -q -p no:randomly tests/test_house.py

docs: setup
	@$(RUN) tools/docs/build.py

release: setup
	@$(RUN) tools/dev_requirements.py release >$(VENV)/release-requirements.txt
	@$(RUN) -m pip install -qq --disable-pip-version-check -r $(VENV)/release-requirements.txt
	@$(RUN) tools/release.py dist

wheels: setup
	@$(RUN) tools/dev_requirements.py wheels >$(VENV)/wheels-requirements.txt
	@$(RUN) -m pip install -qq --disable-pip-version-check -r $(VENV)/wheels-requirements.txt
	@$(RUN) tools/wheels.py dist $(PYTHONS)

vsix: setup
	@$(RUN) tools/vsix.py dist

deb: setup
	@$(RUN) tools/debian.py release
	@$(RUN) tools/debian_package.py dist

fuzz: setup
	@$(RUN) tools/dev_requirements.py fuzz >$(VENV)/fuzz-requirements.txt
	@$(RUN) -m pip install -qq --disable-pip-version-check --only-binary :all: -r $(VENV)/fuzz-requirements.txt
	@$(RUN) tests/fuzz/run.py --minutes $(MINUTES)

clean:
	rm -rf $(VENV) build dist src/tracepoint/_*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
