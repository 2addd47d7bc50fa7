# The parts of the pages of `tessera report` as C arrays: the chart library of the system, and our script and style.
# Without the library the program is built, and `report` says which package is missing.
find_file(TESSERA_CHART_JS NAMES chart.min.js Chart.min.js chart.umd.js
          PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist /usr/local/share/javascript/chart.js
          DOC "the chart library of report pages" NO_DEFAULT_PATH)
set(TESSERA_CHART "")
if(TESSERA_CHART_JS)
  set(TESSERA_CHART ${TESSERA_CHART_JS})
else()
  message(STATUS "Chart.js not found: `tessera report` is left out (Debian: libjs-chart.js)")
endif()
# Scripts in the order in which they need one another.
set(page_scripts)
foreach(name values records zoom figure table section pictures studies pages compare timeline timeline_page main)
  list(APPEND page_scripts ${CMAKE_SOURCE_DIR}/src/report/page/${name}.js)
endforeach()
set(page_styles ${CMAKE_SOURCE_DIR}/src/report/page/page.css)
set(page_parts ${CMAKE_BINARY_DIR}/report_parts.c)
string(REPLACE ";" "|" scripts "${page_scripts}")
string(REPLACE ";" "|" styles "${page_styles}")
add_custom_command(
  OUTPUT ${page_parts}
  COMMAND ${CMAKE_COMMAND} "-DOUT=${page_parts}" "-Dchart=${TESSERA_CHART}" "-Dscript=${scripts}" "-Dstyle=${styles}"
          -P ${CMAKE_SOURCE_DIR}/cmake/page_parts.cmake
  DEPENDS ${page_scripts} ${page_styles} ${TESSERA_CHART} ${CMAKE_SOURCE_DIR}/cmake/page_parts.cmake
  COMMENT "Parts of report pages"
  VERBATIM)
list(APPEND TESSERA_SOURCES ${page_parts})
