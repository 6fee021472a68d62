# Third-party libraries, all from Debian packages (see ./dev). Static where Debian ships an archive, so that one
# binary runs on another Linux machine.
find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

find_library(RAPIDCHECK_LIBRARY librapidcheck.a REQUIRED)
add_library(rapidcheck_static INTERFACE)
target_link_libraries(rapidcheck_static INTERFACE ${RAPIDCHECK_LIBRARY})

find_library(OPENBLAS_LIBRARY NAMES libopenblas.a openblas REQUIRED)
