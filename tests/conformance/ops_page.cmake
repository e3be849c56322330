# docs/ops.md is what `dlc ops` makes of the tables, the records and the lists.
execute_process(COMMAND "${DLC}" ops --markdown --lists "${LISTS}" --hw asic -o "${MADE}" RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "dlc ops failed")
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" -E compare_files "${MADE}" "${PAGE}" RESULT_VARIABLE differs)
if(differs)
  message(FATAL_ERROR "docs/ops.md is not what dlc says; cp ${MADE} ${PAGE}")
endif()
