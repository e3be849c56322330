# dlc_add_plugin(NAME my_npu SOURCES npu.cpp... [VERSION 0.1.0] [SCHEMES my_npu...] [FAMILIES family/1...]
#                [HWDESC my_npu.yaml...] [LIBRARIES libs...])
#
# A plugin of dlc: lib<NAME>.so, which exports one symbol, and its manifest <NAME>.plugin.yaml beside it. The target is
# called dlc_plugin_<NAME>. `install` puts both where an installed dlc looks, and the descriptions beside its own.
set(DLC_PLUGIN_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")

function(dlc_add_plugin)
  cmake_parse_arguments(ARG "" "NAME;VERSION" "SOURCES;SCHEMES;FAMILIES;HWDESC;LIBRARIES" ${ARGN})
  if(NOT ARG_NAME OR NOT ARG_SOURCES)
    message(FATAL_ERROR "dlc_add_plugin: NAME and SOURCES are needed")
  endif()
  if(NOT ARG_VERSION)
    set(ARG_VERSION "0.1.0")
  endif()
  if(NOT ARG_SCHEMES)
    set(ARG_SCHEMES "${ARG_NAME}")
  endif()
  set(target "dlc_plugin_${ARG_NAME}")
  set(folder "${CMAKE_BINARY_DIR}/lib/dlc/plugins")

  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE dlc::sdk ${ARG_LIBRARIES})
  target_compile_features(${target} PRIVATE cxx_std_23)
  set_target_properties(${target} PROPERTIES PREFIX "lib" OUTPUT_NAME "${ARG_NAME}" LIBRARY_OUTPUT_DIRECTORY "${folder}"
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS "${DLC_PLUGIN_MAP}")
  target_link_options(${target} PRIVATE "LINKER:--version-script=${DLC_PLUGIN_MAP}")
  if(NOT DLC_SANITIZE)
    target_link_options(${target} PRIVATE "LINKER:-z,defs")   # what is missing is missed now, not when it is loaded
  endif()

  list(JOIN ARG_SCHEMES ", " schemes)
  set(manifest "dlc_plugin: 1\nname: ${ARG_NAME}\nversion: ${ARG_VERSION}\nabi: 1\nschemes: [${schemes}]\n")
  if(ARG_FAMILIES)
    list(JOIN ARG_FAMILIES ", " families)
    string(APPEND manifest "families: [${families}]\n")
  endif()
  file(GENERATE OUTPUT "${folder}/${ARG_NAME}.plugin.yaml" CONTENT "${manifest}")

  install(TARGETS ${target} LIBRARY DESTINATION lib/dlc/plugins)
  install(FILES "${folder}/${ARG_NAME}.plugin.yaml" DESTINATION lib/dlc/plugins)
  if(ARG_HWDESC)
    install(FILES ${ARG_HWDESC} DESTINATION share/dlc/hwdesc)
  endif()
endfunction()
