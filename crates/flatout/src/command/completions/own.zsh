_flatout() {
    local -a known=(AREAS) before=("${(@)words[3,CURRENT-1]}") all=("${words[@]}")
    local -a named=(${(u)${before:*known}})
    if [[ $words[2] != bench ]] || (( $#named < 2 )); then
        _flatout_area "$@"
        return
    fi
    local area at=$CURRENT ret=1
    for area in $named; do
        words=(flatout bench $area "${(@)before:|known}" "${all[at]}")
        CURRENT=$#words
        _flatout_area "$@" && ret=0
    done
    return ret
}

