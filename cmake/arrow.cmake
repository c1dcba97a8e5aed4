# Imported targets made from the pyarrow wheel itself, which carries Arrow's C++ headers and libraries:
#   xsa_parquet: Arrow and Parquet. Their headers are heavy: a few .cpp files of xsa/data include them, no header does.
execute_process(
  COMMAND ${XSA_PYTHON} -c "import pyarrow as pa; print(';'.join([pa.get_include(), pa.get_library_dirs()[0], pa.cpp_build_info.version, pa.cpp_build_info.so_version]))"
  OUTPUT_VARIABLE arrow_facts OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE arrow_failed ERROR_VARIABLE arrow_error)
if(arrow_failed)
  message(FATAL_ERROR "'${XSA_PYTHON}' cannot import pyarrow:\n${arrow_error}\nRun `make build`, which installs it, or give PYTHON=... with the pyarrow of requirements.txt.")
endif()
# As tools/setup, for those who call CMake themselves: the version that requirements.txt names, with its headers.
execute_process(COMMAND ${XSA_PYTHON} ${CMAKE_SOURCE_DIR}/tools/check_python.py pyarrow
                RESULT_VARIABLE arrow_failed ERROR_VARIABLE arrow_error)
if(arrow_failed)
  message(FATAL_ERROR "'${XSA_PYTHON}': ${arrow_error}Install the pyarrow of requirements.txt there by pip.")
endif()
list(GET arrow_facts 0 arrow_include)
list(GET arrow_facts 1 arrow_folder)
list(GET arrow_facts 2 arrow_version)
list(GET arrow_facts 3 arrow_so)
message(STATUS "Arrow ${arrow_version} in ${arrow_folder}")

add_library(xsa_parquet INTERFACE)
target_include_directories(xsa_parquet SYSTEM INTERFACE ${arrow_include})
# The wheel names its libraries by their full version, without the usual link.
target_link_libraries(xsa_parquet INTERFACE ${arrow_folder}/libparquet.so.${arrow_so} ${arrow_folder}/libarrow.so.${arrow_so})
target_link_options(xsa_parquet INTERFACE -Wl,-rpath,${arrow_folder} -Wl,--allow-shlib-undefined)
