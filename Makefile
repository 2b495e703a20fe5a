# Every verb prepares what it needs. `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# cmake and ninja are taken from the virtual environment: a compiler and Python are all a machine must have.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell getconf _NPROCESSORS_ONLN)

SOURCES := $(wildcard kernels/*/*.hpp kernels/*/*.cpp)
KERNELS := $(SOURCES) $(wildcard kernels/*/*.def)
BUILD_REQUIRES := "scikit-build-core>=0.10" "nanobind>=2.4" "hatch-fancy-pypi-readme>=23.2" "cmake>=3.26" "ninja>=1.11"
# liblinear-official, which the tests compare with, has no wheel: without isolation it needs a setuptools that can make one.
DEV_REQUIRES := $(BUILD_REQUIRES) "setuptools>=70.1"
READY := $(VENV)/.ready
BUILT := $(VENV)/.built
DEMO_READY := $(VENV)/.demo-ready
# Developers see warnings as errors; users with a newer compiler must not.
STRICT := --config-settings=cmake.define.LINSEP_WERROR=ON
DOCS_READY := $(VENV)/.docs-ready
OLD := .venv-oldest/bin
OLDEST_PYTHON ?= $(or $(shell command -v python3.10),$(PYTHON))
BENCH := .venv-bench/bin
BENCH_READY := .venv-bench/.ready
BENCH_BUILT := .venv-bench/.built

.DEFAULT_GOAL := help
.PHONY: fuzz
.PHONY: help setup build stub demo test test-slow sklearn-tests oldest browser-test lint format bench docs wheel sdist clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(BUILT) ## create .venv with everything a developer needs

build: $(BUILT) ## recompile the kernels that changed

stub: $(BUILT) ## write the types of the kernels, src/linsep/_kernels.pyi, from their bindings
	$(BIN)/python -m nanobind.stubgen -q -m linsep._kernels -o src/linsep/_kernels.pyi

# The demo needs no development tools, and kernels for this machine alone; a full set-up serves as well.
demo: $(if $(wildcard $(BUILT)),$(BUILT),$(DEMO_READY)) ## train, tune, certify and report on a bundled real table
	$(BIN)/linsep demo build/demo
	@echo "open build/demo/penguins.html"

# The tests run in as many processes as there are cores: threads of BLAS would only wait for each other. Bytecode is
# kept even where the environment forbids it: compiling all tests again takes each process 11 seconds.
TESTS := PYTHONHASHSEED=0 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal
test: $(BUILT) ## run the fast tests
	$(TESTS) -m "not slow"

test-slow: $(BUILT) ## run the slow tests
	$(TESTS) -m slow

# Each case in a process of its own, with limits of time and memory; one that does not end as it says is an error.
.PHONY: faults faults-peers
faults: $(BUILT) ## run all cases of bad input and count crashes, hangs, wrong answers and vague messages
	PYTHONPATH=tests/faults PYTHONHASHSEED=0 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m scoreboard

faults-peers: $(BENCH_BUILT) ## the groups that others can run too, on linsep, scikit-learn and LIBLINEAR
	$(BENCH)/python -m pip install --quiet pyarrow pandas polars
	PYTHONPATH=tests/faults PYTHONHASHSEED=0 OPENBLAS_NUM_THREADS=1 $(BENCH)/python -m scoreboard \
	  --group F1 F4 F5 F6 --library linsep scikit-learn LIBLINEAR

# scikit-learn's own test files, from its wheel, with the classes of linsep.sklearn in the place of scikit-learn's.
SUITE := test_logistic test_sgd test_perceptron test_ridge test_coordinate_descent test_base test_quantile test_huber test_common
sklearn-tests: $(BUILT) ## run scikit-learn's own tests on the classes of linsep.sklearn
	PYTHONPATH=tests/sklearn_suite OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -c tests/sklearn_suite/pytest.ini -n auto --dist worksteal \
	  --pyargs $(addprefix sklearn.linear_model.tests.,$(SUITE)) sklearn.svm.tests.test_svm

# The lowest versions that pyproject.toml allows, on the oldest Python at hand: make oldest OLDEST_PYTHON=python3.10.
# Newer versions warn of other things, so warnings are no errors here. Left out: a bound that needs the non-negative least
# squares of a newer scipy, and a check of scikit-learn 1.6 that was corrected later.
OLDEST_TESTS := $(addprefix tests/,estimators sklearn auditing accel tuning pipelines losses penalties inference bounds \
  separability basis export model_files tables/test_encoder.py test_train.py test_small_dense.py)
oldest: ## run the tests of estimators, audits, tuning, pipelines, exports and inference on the oldest supported versions
	test -x $(OLD)/python || $(OLDEST_PYTHON) -m venv .venv-oldest
	echo '*' > .venv-oldest/.gitignore
	$(OLD)/python -m pip install --quiet $(DEV_REQUIRES) tomli
	$(OLD)/python .ci/oldest.py > .venv-oldest/lowest.txt
	$(OLD)/python -m pip install --quiet --constraint .venv-oldest/lowest.txt --no-build-isolation --editable ".[cli,onnx,exact,dask]" \
	  --config-settings=cmake.define.LINSEP_NATIVE=ON --config-settings=build-dir=build/oldest
	$(OLD)/python -m pip install --quiet --constraint .venv-oldest/lowest.txt --no-build-isolation "pytest>=8,<9" pytest-xdist \
	  hypothesis mpmath pandas polars duckdb statsmodels skops onnxruntime liblinear-official "dask[array,dataframe]" "fsspec[http]"
	PYTHONHASHSEED=0 OPENBLAS_NUM_THREADS=1 $(OLD)/python -m pytest -m "not slow" -o filterwarnings=default -n auto --dist worksteal \
	  -k "not lost_in_rounding and not (ZeroOneClassifier and sample_weight_equivalence)" $(OLDEST_TESTS)

# Kernels under a sanitizer, in a build directory of their own: SANITIZED_SETS="base avx2" for both.
.PHONY: sanitize sanitize-threads
sanitize: $(BUILT) ## run the kernel tests, failing allocations and a short fuzzing under AddressSanitizer and UBSan
	$(BIN)/python .ci/sanitize.py address $(addprefix --set ,$(SANITIZED_SETS))

sanitize-threads: $(BUILT) ## run the tests of several threads under ThreadSanitizer
	$(BIN)/python .ci/sanitize.py thread $(addprefix --set ,$(SANITIZED_SETS))

FUZZ_TARGETS := libsvm csv model cache checkpoint config
TARGET ?= $(FUZZ_TARGETS)
COUNT ?= 2000
SEED ?= 0
fuzz: $(BUILT) ## read damaged files of every kind: make fuzz TARGET=libsvm COUNT=1000000 SEED=1
	for target in $(TARGET); do \
	  OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/fuzz/fuzz.py $$target --count $(COUNT) --seed $(SEED) || exit 1; done

.PHONY: spark-ready spark-test
spark-ready: $(BUILT)
	.ci/need spark-test java=openjdk-17-jre-headless
	$(PIP) install --quiet "pyspark>=4"

spark-test: spark-ready ## fit and predict on Spark in local mode (needs Java 17)
	PYTHONHASHSEED=0 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m spark tests/spark

browser-test: $(BUILT) ## open the HTML report in a real browser (installs Debian's chromium if it may)
	.ci/need browser-test chromium=chromium chromedriver=chromium-driver
	$(BIN)/python -m pytest -m browser tests/browser

# Other platforms, compilers and instruction sets. Each builds into its own folder below build/.
.PHONY: aarch64 platforms clang test-sets coverage build-time
aarch64: $(BUILT) ## cross-compile for Linux on aarch64, run the kernel tests and a few fits under emulation
	.ci/aarch64

platforms: $(BUILT) ## compile the kernels with clang for Linux, macOS and Windows, run their check where possible
	$(PIP) install --quiet "ziglang>=0.13,<0.14"
	$(BIN)/python .ci/platforms.py $(TARGETS)

clang: $(BUILT) ## build the module with clang++ and run the kernel tests on it
	.ci/need clang clang++=clang
	CXX=clang++ .ci/variant clang -DLINSEP_WERROR=ON -- -m pytest -q -m "not slow" tests/kernels

# A machine without AVX-512 runs those kernels with eight lanes in AVX2 registers: the same sums in the same order.
HAS_AVX512 := $(shell grep -m1 -o avx512vl /proc/cpuinfo 2>/dev/null)
SETS ?= base avx2 avx512
test-sets: $(BUILT) ## run the fast tests with the kernels of every x86 instruction set (SETS="base avx2")
	for set in $(SETS); do \
	  LINSEP_INSTRUCTION_SET=$$set \
	    $(if $(HAS_AVX512),$(TESTS),.ci/variant sets -DLINSEP_EIGHT_LANES=ON -- -m pytest -n auto --dist worksteal) \
	    -q -m "not slow" || exit 1; \
	done

coverage: $(BUILT) ## measure which lines of Python and C++ the fast tests run: build/coverage/report
	$(PIP) install --quiet pytest-cov gcovr
	.ci/coverage

build-time: $(BUILT) ## measure a full rebuild: one instruction set, then all
	.ci/build_time

lint: $(BUILT) ## check format, style, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run -Werror $(SOURCES)

format: $(BUILT) ## rewrite the files in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(SOURCES)

.PHONY: bench-full bench-check
bench: $(BENCH_BUILT) ## time linsep and its peers at equal certified suboptimality, under ten minutes
	$(BENCH)/python benchmarks/run.py

bench-full: $(BENCH_BUILT) ## the same on all data, and everything else that is measured: hours
	$(BENCH)/python benchmarks/run.py --full
	$(BENCH)/python benchmarks/multiclass.py --full
	$(BENCH)/python benchmarks/sparsity.py --full
	$(BENCH)/python benchmarks/growth.py --full
	$(BENCH)/python benchmarks/predict.py
	$(BENCH)/python benchmarks/footprint.py
	$(BENCH)/python benchmarks/plot.py

.PHONY: calibrate regret
calibrate: $(BUILT) ## measure what each solver costs and write the prices that solver="auto" compares: hours
	$(BIN)/python benchmarks/calibrate.py

regret: $(BUILT) ## time solver="auto" against every solver on tables that calibration has not seen
	$(BIN)/python benchmarks/regret.py

bench-check: $(BUILT) ## compare instruction counts with the recorded ones (needs valgrind)
	$(BIN)/python benchmarks/counts.py

docs: $(DOCS_READY) ## build the documentation into build/docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "open build/docs/index.html"

# Releases: docs/releasing.md says when each of these is run.
.PHONY: audit-tools sbom reproducible
audit-tools: $(BUILT)
	$(PIP) install --quiet build auditwheel twine

wheel: audit-tools ## build a wheel into dist/, audit it and try it in an empty environment
	rm -rf dist/*.whl build/wheel-check
	$(PIP) wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .
	$(BIN)/python -m auditwheel show dist/linsep-*.whl
	$(BIN)/python -m twine check --strict dist/linsep-*.whl
	$(BIN)/python -m venv build/wheel-check
	build/wheel-check/bin/python -m pip --disable-pip-version-check install --quiet "$$(echo dist/linsep-*.whl)[cli]"
	cd build/wheel-check && bin/python -W error "$(CURDIR)/.ci/try_wheel.py"
	rm -rf build/wheel-check

sdist: audit-tools ## build the source distribution into dist/ and list what it lacks
	rm -f dist/*.tar.gz
	$(BIN)/python -m build --quiet --sdist --no-isolation --outdir dist .
	$(BIN)/python .ci/check_sdist.py dist/linsep-*.tar.gz
	$(BIN)/python -m twine check --strict dist/linsep-*.tar.gz

sbom: $(BUILT) ## write the bill of materials of the wheel in dist/ (CycloneDX)
	test -e dist/linsep-*.whl || $(MAKE) wheel
	$(BIN)/python .ci/sbom.py dist/linsep-*.whl

reproducible: $(BUILT) ## build the wheel twice in different folders and compare the bytes
	$(BIN)/python .ci/reproducible.py

clean: ## remove everything that was built, and the virtual environment
	rm -rf build dist $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests examples benchmarks docs -name __pycache__ -prune -exec rm -rf {} +

NEW_VENV = test -x $(BIN)/python || { .ci/need setup $(firstword $(CXX))=g++ cc=gcc && $(PYTHON) .ci/check_python.py && $(PYTHON) -m venv $(VENV); }

# The environment: once, and again when the requirements change.
$(READY): pyproject.toml CMakeLists.txt
	$(NEW_VENV)
	$(PIP) install --quiet $(DEV_REQUIRES)
	$(PIP) install --quiet --no-build-isolation $(STRICT) --editable ".[dev]"
	touch $@

# A build directory of its own: `make test` afterwards compiles all instruction sets.
$(DEMO_READY): pyproject.toml CMakeLists.txt $(KERNELS)
	$(NEW_VENV)
	$(PIP) install --quiet $(BUILD_REQUIRES)
	$(PIP) install --quiet --no-build-isolation --editable ".[cli]" \
	  --config-settings=cmake.define.LINSEP_NATIVE=ON --config-settings=build-dir=build/native
	touch $@

# The kernels: incremental, because the build directory under build/ persists.
$(BUILT): $(READY) $(KERNELS)
	$(PIP) install --quiet --no-build-isolation --no-deps $(STRICT) --editable .
	touch $@

$(DOCS_READY): $(BUILT) pyproject.toml
	$(PIP) install --quiet --no-build-isolation $(STRICT) --editable ".[docs]"
	touch $@

# The rivals live in an environment of their own. One that cannot be installed is left out of the race.
$(BENCH_READY): benchmarks/requirements.txt
	test -x $(BENCH)/python || $(PYTHON) -m venv .venv-bench
	echo '*' > .venv-bench/.gitignore
	$(BENCH)/python -m pip install --quiet $(BUILD_REQUIRES)
	grep -v '^#' benchmarks/requirements.txt | while read -r pin; do \
	  $(BENCH)/python -m pip install --quiet --constraint benchmarks/requirements.txt "$$pin" \
	    || echo "not installed: $$pin"; done
	touch $@

# A copy of the package, not a link: a long race must not see files that change meanwhile.
$(BENCH_BUILT): $(BENCH_READY) pyproject.toml CMakeLists.txt $(KERNELS) $(shell find src -name '*.py')
	$(BENCH)/python -m pip install --quiet --no-build-isolation --force-reinstall --no-deps . \
	  --config-settings=build-dir=build/bench
	touch $@
