function __fish_flatout_list
    set -l token (string replace -r '^--[^=]*=' '' -- (commandline -ct))
    string match -q '*,*' -- $token; or return
    printf '%s\n' (string replace -r '[^,]*$' '' -- $token)$argv
end
