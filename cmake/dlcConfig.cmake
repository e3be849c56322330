# find_package(dlc): what authors of plugins need.
#   dlc::sdk             link it, derive from dlc::Backend (dlc/plugin/backend.h), say DLC_PLUGIN(MyBackend)
#   dlc::hw              the same with hardware descriptions (dlc/hw/load.h, simulator.h)
#   dlc_add_plugin(...)  DlcAddPlugin.cmake
include(CMakeFindDependencyMacro)
find_dependency(fmt)
get_filename_component(dlc_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET dlc::sdk)
  add_library(dlc::sdk STATIC IMPORTED)
  set_target_properties(dlc::sdk PROPERTIES
    IMPORTED_LOCATION "${dlc_prefix}/lib/libdlc_sdk.a"
    INTERFACE_INCLUDE_DIRECTORIES "${dlc_prefix}/include"
    INTERFACE_LINK_LIBRARIES fmt::fmt)
  add_library(dlc::hw INTERFACE IMPORTED)
  set_target_properties(dlc::hw PROPERTIES INTERFACE_LINK_LIBRARIES "dlc::sdk;yaml-cpp;xxhash;hwloc")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/DlcAddPlugin.cmake")
