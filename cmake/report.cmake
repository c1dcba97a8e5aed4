# The report's page: its text is compiled in; plotly.min.js is read at run time from the build's Python.
execute_process(
  COMMAND ${XSA_PYTHON} -c "import importlib.util as u; print(u.find_spec('plotly').submodule_search_locations[0])"
  OUTPUT_VARIABLE plotly_folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT plotly_folder)
  message(STATUS "'${XSA_PYTHON}' has no plotly: reports need XSA_PLOTLY_JS at run time")
endif()
set_property(SOURCE ${CMAKE_SOURCE_DIR}/xsa/report/html.cpp APPEND PROPERTY
  COMPILE_DEFINITIONS XSA_PLOTLY_FOLDER="${plotly_folder}")

set(page_files frame.html plots.js page.html page.css page.js set.html set.js diagnosis.html diagnosis.js)
list(TRANSFORM page_files PREPEND ${CMAKE_SOURCE_DIR}/xsa/report/)
set(page_source ${CMAKE_BINARY_DIR}/generated/report_page.cpp)
add_custom_command(
  OUTPUT ${page_source}
  COMMAND ${CMAKE_COMMAND} -DOUT=${page_source} -DNAMESPACE=xsa::report "-DFILES=${page_files}" -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${page_files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
  VERBATIM)
target_sources(xsa_report PRIVATE ${page_source})
