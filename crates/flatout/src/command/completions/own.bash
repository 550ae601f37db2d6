_flatout_areas() {
    local word=$2 before=$3 area areas=() words=()
    if [[ ${COMP_WORDS[1]} == bench ]] && (( COMP_CWORD > 2 )); then
        for area in "${COMP_WORDS[@]:2:COMP_CWORD - 2}"; do
            [[ $area == @(AREAS) ]] && areas+=("$area")
        done
    fi
    (( ${#areas[@]} > 1 )) || { _flatout "$@"; return; }
    for area in "${areas[@]}"; do
        local COMP_WORDS=(flatout bench "$area" "$before" "$word") COMP_CWORD=4
        if [[ $before == -* ]]; then
            _flatout "$1" "$before" "$area"
            [[ " ${COMPREPLY[*]} " == *" $before "* ]] || continue
        fi
        _flatout "$1" "$word" "$before"
        words+=("${COMPREPLY[@]}")
    done
    mapfile -t COMPREPLY < <((( ${#words[@]} )) && printf '%s\n' "${words[@]}" | sort -u)
}

_flatout_words() {
    local word=$2 before=$3 words=() items=
    [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD - 2]}
    [[ ${COMP_WORDS[COMP_CWORD]} == = ]] && word= before=${COMP_WORDS[COMP_CWORD - 1]}
    [[ ${COMP_WORDS[1]} == @(help|man) ]] && compopt +o default +o bashdefault 2>/dev/null
    if [[ $before == @(LISTS) && $word == *,* ]]; then
        items=${word%,*}, word=${word##*,}
    fi
    _flatout_areas "$1" "$word" "$before"
    [[ $word == -* ]] && return
    for word in "${COMPREPLY[@]}"; do
        [[ $word == -* ]] || words+=("$items$word")
    done
    COMPREPLY=("${words[@]}")
    if [[ $before != -* && ${COMP_WORDS[1]} == bench && " ${COMP_WORDS[*]} " == *" "@(disk|copy)" "* ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$2")
    fi
}

