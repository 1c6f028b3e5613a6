# Run by `cmake --install`: installs stretto/stretto.h, which includes the public headers, the public headers
# that it doesn't include (it lists them), and every header of stretto that these reach. Headers that only stretto's own sources
# and tests include are not installed.
# STRETTO_SOURCE: root of the sources.
cmake_policy(VERSION 3.22)
set(wanted stretto/stretto.h stretto/data/block_dataset.h stretto/data/curriculum.h stretto/generate/generator.h
  stretto/model_config/heads.h stretto/models/bert/model.h stretto/optim/parameter_piece.h stretto/optim/parts.h
  stretto/settings/yaml.h stretto/strategy/batch_plan.h stretto/token_corpus/blocks.h)
set(headers "")
while(wanted)
  list(POP_FRONT wanted header)
  if(header IN_LIST headers)
    continue()
  endif()
  list(APPEND headers ${header})
  file(STRINGS ${STRETTO_SOURCE}/${header} includes REGEX "^ *# *include *[<\"]stretto/")
  foreach(line IN LISTS includes)
    string(REGEX REPLACE ".*[<\"](stretto/[^>\"]+)[>\"].*" "\\1" included "${line}")
    list(APPEND wanted ${included})
  endforeach()
endwhile()
foreach(header IN LISTS headers)
  get_filename_component(folder ${header} DIRECTORY)
  file(INSTALL ${STRETTO_SOURCE}/${header} DESTINATION ${CMAKE_INSTALL_PREFIX}/include/${folder})
endforeach()
